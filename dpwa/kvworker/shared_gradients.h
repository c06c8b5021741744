#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dpwa/kvworker/step_exchange.h"
#include "dpwa/kvworker/worker_model.h"
#include "dpwa/snapshot/aligned_buffer.h"

namespace dpwa::kvstore {

// Which gradients share a key: those of at most `gradient_bytes`, in keys of at most `key_bytes`.
struct SharedKeys {
  std::size_t gradient_bytes = std::size_t{16} << 10;
  std::size_t key_bytes = std::size_t{256} << 10;
};

// The gradients of a model as values of the store, which come back as their mean over the workers.
//
// Small ones of one type share a key, because a key costs workers and servers the same time however
// small it is. Such a key is pushed once all of its gradients are complete. Which ones share one
// depends on the parameters alone, so that all workers have the same keys. A gradient that is not
// there counts as zeros; one more key tells which ones some worker has. Used by the training
// thread.
class SharedGradients {
 public:
  // `call`: as in StepExchange. Throws std::runtime_error as StepExchange::wait_created.
  SharedGradients(WorkerSession& session, WorkerModel& model, std::string call,
                  const SharedKeys& limits = {});

  // The gradient of the trained parameter with this index, once in a step. Its content must not
  // change before finish().
  void push(std::size_t index, const kvclient::PushTerms& terms);
  // Those that have not been pushed in this step. `checksum`: of this worker's weights, to compare
  // them; all workers give one in the same steps.
  void push_rest(const kvclient::PushTerms& terms, std::optional<std::uint32_t> checksum = {});
  // Asks for the means.
  void pull(std::uint64_t step) { exchange_.pull_pushed(step); }
  // Waits for the means, and writes them to the gradients of the parameters. A parameter for which
  // no worker has a gradient that counts has none then, so that optimizers skip it.
  ExchangeReport finish();
  // After that: whether some worker has a gradient of this parameter that counts.
  bool is_there(std::size_t index) const;
  // After a complete finish() of a step in which this worker counted, too: false where the checksum
  // of some worker differs.
  bool has_equal_checksums() const;
  // As StepExchange::next_step.
  std::uint64_t next_step(ExchangeReport& report) { return exchange_.next_step(report); }

 private:
  struct Key {
    std::vector<std::size_t> members;
    std::size_t bytes = 0;
    AlignedBuffer shared;     // the members one after the other; empty: one member
    std::size_t missing = 0;  // members that have not been pushed in this step
    Came came{};              // the copies to `shared`, of which the last is complete last
    bool is_shared() const { return members.size() > 1; }
  };
  struct Place {
    std::size_t key = 0;   // of keys_ and of exchange_
    std::size_t from = 0;  // in bytes
  };
  void cut_into_keys(const SharedKeys& limits);
  void add_keys(bool compresses_shared);
  std::uint64_t bytes_of(std::size_t index) const;
  std::span<std::byte> place_of(std::size_t index);  // in a shared key

  WorkerModel& model_;
  StepExchange exchange_;
  std::vector<Key> keys_;
  std::vector<Place> places_;  // by trained parameter
  std::vector<bool> pushed_;   // by trained parameter: in this step
  // By trained parameter: the share of the workers that have a gradient. Behind them the mean of
  // the parts of the checksums.
  std::vector<float> present_;
  std::optional<std::uint32_t> checksum_;
};

}  // namespace dpwa::kvstore
