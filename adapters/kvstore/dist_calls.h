#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "adapters/kvstore/dist_store.h"

namespace dpwa::kvstore {

// A push of one or more keys that is under way.
class DistPush : public Call {
 public:
  DistPush(DistStore& store, std::vector<std::shared_ptr<PushUnderWay>> pushes)
      : store_(store), pushes_(std::move(pushes)) {}
  bool done() override;
  Versions wait() override;

 private:
  DistStore& store_;
  std::vector<std::shared_ptr<PushUnderWay>> pushes_;
};

// A pull that is under way: each value comes with the answer to a push, or is asked for. The
// tensors are filled by wait().
class DistPull : public Call {
 public:
  DistPull(DistStore& store, const std::vector<KeyedTensors>& outs, int priority,
           const std::vector<std::shared_ptr<PushUnderWay>>& pushes);
  ~DistPull() override;
  DistPull(const DistPull&) = delete;
  DistPull& operator=(const DistPull&) = delete;
  bool done() override;
  Versions wait() override;

 private:
  struct Part {
    KeyedTensors out;
    std::shared_ptr<PushUnderWay> push;      // whose answer has the value; null: a pull
    std::optional<kvclient::Ticket> ticket;  // of the pull; none: its outcome was taken
    std::optional<kvclient::Outcome> outcome;
    std::optional<std::uint64_t> version;  // the tensors are filled
  };
  void wait_for_push(Part& part);

  DistStore& store_;
  int priority_;
  std::vector<Part> parts_;
};

}  // namespace dpwa::kvstore
