#include "adapters/collective/session_store.h"

#include <cstddef>
#include <stdexcept>
#include <utility>

#include "dpwa/collective/signature.h"

namespace dpwa::collective {
namespace {

[[noreturn]] void refuse(const std::string& what) {
  throw std::runtime_error("the store of a group has no server, and so cannot " + what);
}

}  // namespace

std::string SessionStore::writer_of(const std::string& key) const {
  for (std::size_t rank = 0; rank < names_.size(); ++rank) {
    if (key == invitation_of(static_cast<int>(rank))) return names_[rank];
  }
  return {};
}

SessionStore::SessionStore(std::shared_ptr<group::SharedEntries> entries,
                           const GroupOptions& options, std::stop_token stop)
    : Store(options.form_timeout),
      entries_(std::move(entries)),
      group_(options.members),
      rank_(options.rank),
      names_(options.names),
      stop_(std::move(stop)) {}

c10::intrusive_ptr<c10d::Store> SessionStore::clone() {
  GroupOptions options;
  options.form_timeout = getTimeout();
  options.members = group_;
  options.rank = rank_;
  options.names = names_;
  return c10::make_intrusive<SessionStore>(entries_, options, stop_);
}

void SessionStore::set(const std::string& key, const Bytes& value) {
  if (stop_.stop_requested()) throw std::runtime_error("given up");
  if (!entries_->put({group_, key, value}))
    throw std::runtime_error("the members of the group cannot be told '" + key + "' of " +
                             std::to_string(value.size()) + " bytes");
}

SessionStore::Bytes SessionStore::get(const std::string& key) {
  return value_of(key, getTimeout());
}

bool SessionStore::check(const Keys& keys) {
  for (const std::string& key : keys) {
    if (!entries_->find(group_, key, writer_of(key))) return false;
  }
  return true;
}

void SessionStore::wait(const Keys& keys, const std::chrono::milliseconds& timeout) {
  const auto until = std::chrono::steady_clock::now() + timeout;
  for (const std::string& key : keys) {
    const auto left = until - std::chrono::steady_clock::now();
    value_of(key, std::chrono::ceil<std::chrono::milliseconds>(left));
  }
}

SessionStore::Bytes SessionStore::value_of(const std::string& key,
                                           std::chrono::milliseconds timeout) const {
  auto value = entries_->wait(group_, key, std::chrono::steady_clock::now() + timeout, stop_,
                              writer_of(key));
  if (value) return *std::move(value);
  if (stop_.stop_requested()) throw std::runtime_error("given up");
  const std::string late = missing();
  throw std::runtime_error(late.empty() ? "nobody has set '" + key + "'" : late + " not come");
}

// "rank 2 has" or "ranks 2, 5 have": of the others that have set nothing.
std::string SessionStore::missing() const {
  std::string ranks;
  int count = 0;
  for (std::size_t rank = 0; rank < names_.size(); ++rank) {
    if (static_cast<int>(rank) == rank_ || entries_->has_come(group_, names_[rank])) continue;
    ranks += (count++ == 0 ? "" : ", ") + shown_rank(rank, names_);
  }
  if (count == 0) return {};
  return count == 1 ? "rank " + ranks + " has" : "ranks " + ranks + " have";
}

SessionStore::Bytes SessionStore::compareSet(const std::string& key, const Bytes&, const Bytes&) {
  refuse("compare '" + key + "'");
}
std::int64_t SessionStore::add(const std::string& key, std::int64_t) {
  refuse("count at '" + key + "'");
}
bool SessionStore::deleteKey(const std::string& key) {
  refuse("delete '" + key + "'");
}
std::int64_t SessionStore::getNumKeys() {
  refuse("count its keys");
}
void SessionStore::append(const std::string& key, const Bytes&) {
  refuse("append to '" + key + "'");
}

}  // namespace dpwa::collective
