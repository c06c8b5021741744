#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <utility>
#include <vector>

#include "dpwa/collective/meeting.h"

namespace dpwa::collective {

// A Meeting as a store of c10d. It has no server, so what needs one, such as counters, throws
// std::runtime_error. A get waits until the time is over, or the meeting has stopped. Any thread.
class SessionStore final : public c10d::Store {
 public:
  SessionStore(std::shared_ptr<const Meeting> meeting, std::chrono::milliseconds limit)
      : Store(limit), meeting_(std::move(meeting)) {}

  using Bytes = Meeting::Bytes;
  using Keys = std::vector<std::string>;
  using c10d::Store::compareSet;
  using c10d::Store::set;

  c10::intrusive_ptr<c10d::Store> clone() override;
  void set(const std::string& key, const Bytes& value) override { meeting_->set(key, value); }
  Bytes get(const std::string& key) override { return meeting_->get(key, getTimeout()); }
  bool check(const Keys& keys) override;
  void wait(const Keys& keys) override { wait(keys, getTimeout()); }
  void wait(const Keys& keys, const std::chrono::milliseconds& timeout) override;
  // By single gets and sets, as the base has them.
  bool hasExtendedApi() const override { return false; }

  [[noreturn]] Bytes compareSet(const std::string& key, const Bytes&, const Bytes&) override;
  [[noreturn]] std::int64_t add(const std::string& key, std::int64_t) override;
  [[noreturn]] bool deleteKey(const std::string& key) override;
  [[noreturn]] std::int64_t getNumKeys() override;
  [[noreturn]] void append(const std::string& key, const Bytes&) override;

 private:
  const std::shared_ptr<const Meeting> meeting_;
};

}  // namespace dpwa::collective
