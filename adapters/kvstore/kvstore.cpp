#include "adapters/kvstore/kvstore.h"

#include <string>
#include <utility>
#include <vector>

#include "adapters/kvstore/dist_tensors.h"
#include "adapters/kvstore/local_store.h"
#include "dpwa/kvworker/state_file.h"

namespace dpwa {
namespace {

using kvstore::KeyedTensors;

std::vector<KeyedTensors> keyed(const KVStore::Keys& keys, KVStore::TensorLists lists,
                                std::string_view operation) {
  if (keys.size() != lists.size()) {
    throw KVStoreError(std::string(operation) + ": " + std::to_string(keys.size()) + " keys and " +
                       std::to_string(lists.size()) + " values");
  }
  std::vector<KeyedTensors> result;
  for (std::size_t i = 0; i < keys.size(); ++i) result.push_back({keys[i], std::move(lists[i])});
  return result;
}

KVStore::TensorLists one_each(const KVStore::Tensors& tensors) {
  KVStore::TensorLists lists;
  for (const at::Tensor& tensor : tensors) lists.push_back({tensor});
  return lists;
}

std::unique_ptr<kvstore::Store> store_of(const Config& config) {
  if (!is_local(config.kvstore.type)) return std::make_unique<kvstore::DistTensors>(config);
  return std::make_unique<kvstore::LocalStore>(config.kvstore.type);
}

}  // namespace

KVStore::Handle::Handle(std::unique_ptr<kvstore::Call> call) : call_(std::move(call)) {}
KVStore::Handle::~Handle() = default;
KVStore::Handle::Handle(Handle&&) noexcept = default;
KVStore::Handle& KVStore::Handle::operator=(Handle&&) noexcept = default;

bool KVStore::Handle::done() {
  return call_->done();
}

KVStore::Versions KVStore::Handle::wait() {
  return call_->wait();
}

KVStore::KVStore(std::string_view type)
    : store_(std::make_unique<kvstore::LocalStore>(kvstore::local_type(type))) {}
KVStore::KVStore(const Config& config) : store_(store_of(config)) {}
KVStore::~KVStore() = default;
KVStore::KVStore(KVStore&&) noexcept = default;
KVStore& KVStore::operator=(KVStore&&) noexcept = default;

std::string_view KVStore::type() const {
  return store_->type();
}

int KVStore::rank() const {
  return store_->rank();
}

int KVStore::num_workers() const {
  return store_->num_workers();
}

int KVStore::num_dead_node(std::chrono::milliseconds silent_for) const {
  return store_->num_dead_node(silent_for);
}

std::uint64_t KVStore::dropped_pushes() const {
  return store_->dropped_pushes();
}

void KVStore::barrier() {
  store_->barrier();
}

void KVStore::reload_security() {
  store_->reload_security();
}

void KVStore::init(const Key& key, const at::Tensor& value) {
  store_->init({{key, {value}}});
}

void KVStore::init(const Keys& keys, const Tensors& values) {
  store_->init(keyed(keys, one_each(values), "init"));
}

void KVStore::push(const Key& key, const at::Tensor& value, int priority) {
  store_->push({{key, {value}}}, priority);
}

void KVStore::push(const Key& key, const Tensors& values, int priority) {
  store_->push({{key, values}}, priority);
}

void KVStore::push(const Keys& keys, const Tensors& values, int priority) {
  store_->push(keyed(keys, one_each(values), "push"), priority);
}

void KVStore::push(const Keys& keys, const TensorLists& values, int priority) {
  store_->push(keyed(keys, values, "push"), priority);
}

KVStore::Handle KVStore::push_async(const Keys& keys, const TensorLists& values, int priority) {
  return Handle(store_->push(keyed(keys, values, "push"), priority));
}

std::uint64_t KVStore::pull(const Key& key, const at::Tensor& out, int priority) {
  return store_->pull({{key, {out}}}, priority)->wait().front();
}

std::uint64_t KVStore::pull(const Key& key, const Tensors& outs, int priority) {
  return store_->pull({{key, outs}}, priority)->wait().front();
}

KVStore::Versions KVStore::pull(const Keys& keys, const Tensors& outs, int priority) {
  return store_->pull(keyed(keys, one_each(outs), "pull"), priority)->wait();
}

KVStore::Versions KVStore::pull(const Keys& keys, const TensorLists& outs, int priority) {
  return pull_async(keys, outs, priority).wait();
}

KVStore::Handle KVStore::pull_async(const Keys& keys, const TensorLists& outs, int priority) {
  return Handle(store_->pull(keyed(keys, outs, "pull"), priority));
}

std::uint64_t KVStore::pushpull(const Key& key, const Tensors& values, const Tensors& outs,
                                int priority) {
  return pushpull(Keys{key}, TensorLists{values}, TensorLists{outs}, priority).front();
}

KVStore::Versions KVStore::pushpull(const Keys& keys, const TensorLists& values,
                                    const TensorLists& outs, int priority) {
  return pushpull_async(keys, values, outs, priority).wait();
}

KVStore::Handle KVStore::pushpull_async(const Keys& keys, const TensorLists& values,
                                        const TensorLists& outs, int priority) {
  const auto pulled = keyed(keys, outs, "pull");
  return Handle(store_->pushpull(keyed(keys, values, "push"), pulled, priority));
}

void KVStore::broadcast(const Key& key, const at::Tensor& value, const Tensors& outs,
                        int priority) {
  broadcast(Keys{key}, Tensors{value}, TensorLists{outs}, priority);
}

void KVStore::broadcast(const Keys& keys, const Tensors& values, const TensorLists& outs,
                        int priority) {
  const auto pulled = keyed(keys, outs, "pull");
  const auto given = keyed(keys, one_each(values), "init");
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::string what = "broadcast of key " + keys[i].text();
    for (const at::Tensor& out : outs[i]) {
      const auto to = kvstore::spec_of(out, what), from = kvstore::spec_of(values[i], what);
      if (to != from) throw KVStoreError(what + ": " + from.text() + " to " + to.text());
    }
  }
  store_->init(given);
  store_->pull(pulled, priority)->wait();
}

at::Tensor KVStore::row_sparse_pull(const Key& key, const at::Tensor& row_ids, int priority) {
  return store_->row_sparse_pull(key, row_ids, priority);
}

void KVStore::set_updater(Updater updater) {
  store_->set_updater(std::move(updater));
}

void KVStore::set_optimizer(const kvstore::OptimizerOptions& options) {
  store_->set_optimizer(options);
}

void KVStore::set_optimizer(const torch::optim::Optimizer& optimizer) {
  const auto groups = kvstore::options_of(optimizer);
  if (groups.empty()) throw KVStoreError("the optimizer has no parameters");
  for (const auto& group : groups) {
    if (group != groups.front()) {
      throw KVStoreError("the optimizer has " + std::to_string(groups.size()) +
                         " parameter groups with different options; a store has one set");
    }
  }
  store_->set_optimizer(groups.front());
}

void KVStore::set_gradient_compression(const kvstore::CompressionOptions& options) {
  store_->set_compression(options);
}

void KVStore::save_optimizer_states(const std::filesystem::path& file) const {
  kvstore::write_states(file, store_->states());
}

void KVStore::load_optimizer_states(const std::filesystem::path& file) {
  kvstore::load_states(file, [this](const kvstore::SavedStates& states) { store_->load(states); });
}

}  // namespace dpwa
