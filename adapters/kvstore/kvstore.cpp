#include "adapters/kvstore/kvstore.h"

#include <string>
#include <utility>

#include "adapters/kvstore/local_store.h"
#include "adapters/kvstore/state_file.h"

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

}  // namespace

KVStore::KVStore(std::string_view type)
    : store_(std::make_unique<kvstore::LocalStore>(kvstore::local_type(type))) {}
KVStore::~KVStore() = default;
KVStore::KVStore(KVStore&&) noexcept = default;
KVStore& KVStore::operator=(KVStore&&) noexcept = default;

std::string_view KVStore::type() const {
  return kvstore::name_of(store_->type());
}

void KVStore::init(const Key& key, const at::Tensor& value) {
  store_->init({{key, {value}}});
}

void KVStore::init(const Keys& keys, const Tensors& values) {
  store_->init(keyed(keys, one_each(values), "init"));
}

void KVStore::push(const Key& key, const at::Tensor& value, int /*priority*/) {
  store_->push({{key, {value}}});
}

void KVStore::push(const Key& key, const Tensors& values, int /*priority*/) {
  store_->push({{key, values}});
}

void KVStore::push(const Keys& keys, const Tensors& values, int /*priority*/) {
  store_->push(keyed(keys, one_each(values), "push"));
}

void KVStore::push(const Keys& keys, const TensorLists& values, int /*priority*/) {
  store_->push(keyed(keys, values, "push"));
}

std::uint64_t KVStore::pull(const Key& key, const at::Tensor& out, int /*priority*/) {
  return store_->pull({{key, {out}}}).front();
}

std::uint64_t KVStore::pull(const Key& key, const Tensors& outs, int /*priority*/) {
  return store_->pull({{key, outs}}).front();
}

KVStore::Versions KVStore::pull(const Keys& keys, const Tensors& outs, int /*priority*/) {
  return store_->pull(keyed(keys, one_each(outs), "pull"));
}

KVStore::Versions KVStore::pull(const Keys& keys, const TensorLists& outs, int /*priority*/) {
  return store_->pull(keyed(keys, outs, "pull"));
}

std::uint64_t KVStore::pushpull(const Key& key, const Tensors& values, const Tensors& outs,
                                int priority) {
  return pushpull(Keys{key}, TensorLists{values}, TensorLists{outs}, priority).front();
}

KVStore::Versions KVStore::pushpull(const Keys& keys, const TensorLists& values,
                                    const TensorLists& outs, int /*priority*/) {
  const auto pulled = keyed(keys, outs, "pull");
  store_->check_pull(pulled);
  store_->push(keyed(keys, values, "push"));
  return store_->pull(pulled);
}

void KVStore::broadcast(const Key& key, const at::Tensor& value, const Tensors& outs,
                        int priority) {
  broadcast(Keys{key}, Tensors{value}, TensorLists{outs}, priority);
}

void KVStore::broadcast(const Keys& keys, const Tensors& values, const TensorLists& outs,
                        int /*priority*/) {
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
  store_->pull(pulled);
}

at::Tensor KVStore::row_sparse_pull(const Key& key, const at::Tensor& row_ids, int /*priority*/) {
  return store_->row_sparse_pull(key, row_ids);
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
  try {
    store_->load(kvstore::read_states(file));
  } catch (const KVStoreError& fault) {
    throw KVStoreError(file.string() + ": " + fault.what());
  }
}

}  // namespace dpwa
