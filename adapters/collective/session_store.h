#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

#include "adapters/collective/engine/engine.h"
#include "dpwa/group/shared_entries.h"

namespace dpwa::collective {

// The store at which the members of one group meet, over the authenticated connections that they
// have (dpwa/group). There is no server: each member tells all others what it sets. So a key has
// the value that one member has set (invitation_of() only the one whose it is, where the ranks have
// names), and what needs a server, such as counters, throws
// std::runtime_error. A get waits until the time is over, or `stop` is requested. Any thread.
class SessionStore final : public c10d::Store {
 public:
  SessionStore(std::shared_ptr<group::SharedEntries> entries, const GroupOptions& options,
               std::stop_token stop);

  using Bytes = std::vector<std::uint8_t>;
  using Keys = std::vector<std::string>;
  using c10d::Store::compareSet;
  using c10d::Store::set;

  c10::intrusive_ptr<c10d::Store> clone() override;
  void set(const std::string& key, const Bytes& value) override;
  Bytes get(const std::string& key) override;
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
  Bytes value_of(const std::string& key, std::chrono::milliseconds timeout) const;
  std::string writer_of(const std::string& key) const;  // a name; empty: anybody
  std::string missing() const;

  const std::shared_ptr<group::SharedEntries> entries_;
  const std::uint64_t group_;
  const int rank_;
  const std::vector<std::string> names_;  // by rank
  const std::stop_token stop_;
};

}  // namespace dpwa::collective
