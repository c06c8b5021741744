#include "dpwa/group/shared_entries.h"

namespace dpwa::group {

bool SharedEntries::put(members::Entry entry) {
  const MutexLock lock(mutex_);
  if (!tell_ || !entries_.put(entry)) return false;
  tell_(entry);
  changed_.notify_all();
  return true;
}

void SharedEntries::receive(const members::ProcessId& from, members::Entry entry) {
  const MutexLock lock(mutex_);
  entries_.receive(from, std::move(entry));
  changed_.notify_all();
}

bool SharedEntries::has_come(std::uint64_t group, const std::string& name) const {
  const MutexLock lock(mutex_);
  return entries_.has_come(group, name);
}

bool SharedEntries::others_have_come(std::uint64_t group) const {
  const MutexLock lock(mutex_);
  return entries_.others_have_come(group);
}

std::vector<members::Entry> SharedEntries::own() const {
  const MutexLock lock(mutex_);
  return entries_.own();
}

SharedEntries::Value SharedEntries::find(std::uint64_t group, const std::string& key,
                                         const std::string& writer) const {
  const MutexLock lock(mutex_);
  const auto* const value = entries_.find(group, key, writer);
  return value == nullptr ? std::nullopt : Value(*value);
}

SharedEntries::Value SharedEntries::wait(std::uint64_t group, const std::string& key,
                                         TimePoint until, const std::stop_token& stop,
                                         const std::string& writer) {
  const std::stop_callback wakes(stop, [this] {
    const MutexLock lock(mutex_);
    changed_.notify_all();
  });
  MutexLock lock(mutex_);
  bool in_time = true;
  while (true) {
    if (!tell_ || stop.stop_requested()) return std::nullopt;
    if (const auto* const value = entries_.find(group, key, writer)) return *value;
    if (!in_time) return std::nullopt;
    in_time = changed_.wait_until(lock, until);
  }
}

void SharedEntries::end() {
  const MutexLock lock(mutex_);
  tell_ = nullptr;
  changed_.notify_all();
}

}  // namespace dpwa::group
