#include "adapters/collective/engine/passing_store.h"

#include <mutex>
#include <stdexcept>
#include <utility>

namespace dpwa::collective {

using Bytes = std::vector<std::uint8_t>;
using Keys = std::vector<std::string>;

struct PassingStore::Target {
  std::mutex mutex;
  c10::intrusive_ptr<c10d::Store> store;  // guarded by mutex
};

PassingStore::PassingStore(c10::intrusive_ptr<c10d::Store> store)
    : target_(std::make_shared<Target>()) {
  setTimeout(store->getTimeout());
  target_->store = std::move(store);
}

void PassingStore::let_go() {
  c10::intrusive_ptr<c10d::Store> last;  // ends outside of the lock
  const std::lock_guard lock(target_->mutex);
  last.swap(target_->store);
}

c10::intrusive_ptr<c10d::Store> PassingStore::target() const {
  const std::lock_guard lock(target_->mutex);
  if (!target_->store) throw std::runtime_error("the store of a group that has formed was used");
  return target_->store;
}

c10::intrusive_ptr<c10d::Store> PassingStore::clone() {
  return c10::intrusive_ptr<c10d::Store>(
      c10::intrusive_ptr<PassingStore>::unsafe_steal_from_new(new PassingStore(target_)));
}

void PassingStore::set(const std::string& key, const Bytes& value) {
  target()->set(key, value);
}

Bytes PassingStore::compareSet(const std::string& key, const Bytes& expected,
                               const Bytes& desired) {
  return target()->compareSet(key, expected, desired);
}

Bytes PassingStore::get(const std::string& key) {
  return target()->get(key);
}

std::int64_t PassingStore::add(const std::string& key, std::int64_t value) {
  return target()->add(key, value);
}

bool PassingStore::deleteKey(const std::string& key) {
  return target()->deleteKey(key);
}

bool PassingStore::check(const Keys& keys) {
  return target()->check(keys);
}

std::int64_t PassingStore::getNumKeys() {
  return target()->getNumKeys();
}

void PassingStore::wait(const Keys& keys) {
  target()->wait(keys);
}

void PassingStore::wait(const Keys& keys, const std::chrono::milliseconds& timeout) {
  target()->wait(keys, timeout);
}

void PassingStore::append(const std::string& key, const Bytes& value) {
  target()->append(key, value);
}

std::vector<Bytes> PassingStore::multiGet(const Keys& keys) {
  return target()->multiGet(keys);
}

void PassingStore::multiSet(const Keys& keys, const std::vector<Bytes>& values) {
  target()->multiSet(keys, values);
}

bool PassingStore::hasExtendedApi() const {
  return target()->hasExtendedApi();
}

}  // namespace dpwa::collective
