#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "dpwa/kvstore/messages.h"
#include "dpwa/kvstore/optimizer.h"

namespace dpwa::kvstore {

// The part of a slice that updates change, that a replica repeats and that a snapshot holds. Copies
// share the memory of values and optimizer until an update of one of them (copy on write). One
// thread at a time.
struct SliceState {
  std::uint64_t version = 1;   // grows by one with each update
  std::uint64_t stamp = 0;     // the epoch in which the version was made
  std::uint64_t round = 0;     // merged: the first round that is not closed
  std::uint32_t snapshot = 0;  // the last snapshot after which an update was made
  SharedBytes values;
  std::shared_ptr<OptimizerState> optimizer = std::make_shared<OptimizerState>();
  Bytes optimizer_options;  // of the last update with an optimizer
  // By name: the steps of a worker below this are counted or left out.
  std::map<std::string, Advance> clocks;

  // Runs on the primary, on the backup and for a snapshot in the same way, so that all have the
  // same bits. `spare`: the gradient of the change, if it is not needed afterwards; null otherwise.
  void apply(DType dtype, const Forward& change, Bytes* spare = nullptr);

 private:
  void change_values(DType dtype, const Forward& change, Bytes* spare);
};

// The whole slice as a message, for a replica or a file. It shares the values; `epoch` is 0.
Copy copy_of(const SliceId& slice, const ValueSpec& spec, const SliceState& state);
// None when the message does not fit a slice with so many elements.
std::optional<SliceState> state_of(Copy copy, std::uint64_t elements);

// Takes up the steps of one incarnation of a worker. A later incarnation replaces an earlier one.
void advance(std::map<std::string, Advance>& clocks, const Advance& by);

}  // namespace dpwa::kvstore
