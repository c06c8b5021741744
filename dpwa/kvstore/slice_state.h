#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "dpwa/kvstore/messages.h"
#include "dpwa/kvstore/optimizer.h"

namespace dpwa::kvstore {

// What updates change, a replica repeats and a snapshot holds of a slice. Copies share the memory
// of values and optimizer until an update of one of them (copy on write). One thread at a time.
struct SliceState {
  std::uint64_t version = 1;   // grows by one with each update
  std::uint64_t stamp = 0;     // the epoch in which the version was made
  std::uint64_t round = 0;     // merged: the first that is not closed
  std::uint32_t snapshot = 0;  // the last that has begun: an update that belongs after it was made
  SharedBytes values;
  std::shared_ptr<OptimizerState> optimizer = std::make_shared<OptimizerState>();
  Bytes optimizer_options;  // of the last update with an optimizer
  // By name: the steps of a worker below this are counted or left out.
  std::map<std::string, Advance> clocks;

  // The same on the primary, on the backup and in a snapshot, so all have the same bits.
  // `spare`: the gradient of the change, if nobody needs it after this; null otherwise.
  void apply(DType dtype, const Forward& change, Bytes* spare = nullptr);

 private:
  void change_values(DType dtype, const Forward& change, Bytes* spare);
};

// The whole of a slice as a message, for a replica or a file; the values are shared. `epoch` is 0.
Copy copy_of(const SliceId& slice, const ValueSpec& spec, const SliceState& state);
// None: what the message has is not of a slice with so many elements.
std::optional<SliceState> state_of(Copy copy, std::uint64_t elements);

// Of one incarnation of a worker; a later one goes before it.
void advance(std::map<std::string, Advance>& clocks, const Advance& by);

}  // namespace dpwa::kvstore
