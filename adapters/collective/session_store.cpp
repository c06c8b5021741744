#include "adapters/collective/session_store.h"

#include <algorithm>
#include <stdexcept>

namespace dpwa::collective {
namespace {

[[noreturn]] void refuse(const std::string& what) {
  throw std::runtime_error("the store of a group has no server, and so cannot " + what);
}

}  // namespace

c10::intrusive_ptr<c10d::Store> SessionStore::clone() {
  return c10::make_intrusive<SessionStore>(meeting_, getTimeout());
}

bool SessionStore::check(const Keys& keys) {
  return std::ranges::all_of(keys, [this](const std::string& key) { return meeting_->has(key); });
}

void SessionStore::wait(const Keys& keys, const std::chrono::milliseconds& timeout) {
  const auto until = std::chrono::steady_clock::now() + timeout;
  for (const std::string& key : keys) {
    const auto left = until - std::chrono::steady_clock::now();
    meeting_->get(key, std::chrono::ceil<std::chrono::milliseconds>(left));
  }
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
