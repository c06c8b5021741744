#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "dpwa/base/threads.h"
#include "dpwa/base/time.h"
#include "dpwa/members/group_entries.h"

namespace dpwa::group {

// The entries of groups (members/group_entries.h) for threads that wait for them. Shared by what
// tells the others, such as a GroupNode, and by threads that may outlive it. Any thread.
class SharedEntries {
 public:
  using Tell = std::function<void(const members::Entry&)>;
  // `tell`: gives an entry of this process to the others. Runs under the lock, so it only posts.
  explicit SharedEntries(Tell tell) : tell_(std::move(tell)) {}

  // False: the entry goes beyond the bounds, or nobody tells the others any more.
  bool put(members::Entry entry);
  // As of GroupEntries.
  void receive(const members::ProcessId& from, members::Entry entry);
  bool has_come(std::uint64_t group, const std::string& name) const;
  bool others_have_come(std::uint64_t group) const;
  std::vector<members::Entry> own() const;

  using Value = std::optional<std::vector<std::uint8_t>>;
  // `writer`: as of GroupEntries.
  Value find(std::uint64_t group, const std::string& key, const std::string& writer = {}) const;
  // None: not until this time, or not before `stop` is requested or all has ended.
  Value wait(std::uint64_t group, const std::string& key, TimePoint until,
             const std::stop_token& stop, const std::string& writer = {});

  void end();  // puts and waits fail from now on

 private:
  mutable Mutex mutex_;
  Condition changed_;
  Tell tell_ DPWA_GUARDED_BY(mutex_);  // null: all has ended
  members::GroupEntries entries_ DPWA_GUARDED_BY(mutex_);
};

}  // namespace dpwa::group
