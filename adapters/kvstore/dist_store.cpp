#include "adapters/kvstore/dist_store.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <utility>

#include "adapters/common/flat_parameters.h"
#include "adapters/common/tensor_bytes.h"
#include "adapters/kvstore/dist_calls.h"
#include "dpwa/config/names.h"
#include "dpwa/kvclient/client_options.h"
#include "dpwa/security/security.h"

namespace dpwa::kvstore {

using kvclient::Outcome;
using kvclient::Ticket;
using SteadyClock = std::chrono::steady_clock;

namespace {

// The most pushes of one key under way. Each is held in memory until the servers have acknowledged
// it.
constexpr std::size_t most_pushes_under_way = 2;
constexpr auto leave_limit = std::chrono::milliseconds(500);

void check_file(const Config& config) {
  const auto named = [&](const NodeEntry& node) { return node.name == config.self; };
  if (config.kvstore.servers.empty()) throw ConfigError("kvstore.servers: no servers are listed");
  if (!std::ranges::any_of(config.nodes, named))
    throw ConfigError("nodes: no node is named '" + config.self + "'");
}

// The sum of the pushes of the devices, in the type of the value: in `out` if that is defined, and
// otherwise in new memory.
at::Tensor sum_of(const std::vector<at::Tensor>& tensors, at::Tensor out) {
  const at::NoGradGuard no_grad;
  const at::ScalarType type = tensors[0].scalar_type();
  if (tensors.size() == 1) {
    const at::Tensor dense = dense_on(tensors[0], at::kCPU);
    if (out.defined()) return out.copy_(dense);
    const bool shared = tensors[0].layout() == at::kStrided && dense.is_alias_of(tensors[0]);
    return shared ? dense.clone() : dense;
  }
  const at::ScalarType wide = type == at::kDouble ? at::kDouble : at::kFloat;
  at::Tensor sum =
      out.defined() && wide == type
          ? out.copy_(dense_on(tensors[0], at::kCPU))
          : dense_on(tensors[0], at::kCPU).to(wide, /*non_blocking=*/false, /*copy=*/true);
  for (std::size_t i = 1; i < tensors.size(); ++i) sum.add_(dense_on(tensors[i], at::kCPU));
  return out.defined() && wide != type ? out.copy_(sum) : sum.to(type);
}

}  // namespace

DistStore::DistStore(const Config& config)
    : config_(config),
      rules_(store_rules(config)),
      security_(make_security(config)),
      specs_(config.self),
      compression_(config.kvstore.compression) {
  check_file(config);
  kvclient::StoreClientOptions options = kvclient::client_options(config, security_);
  options.engine.own_steps = true;
  client_ = std::make_unique<kvclient::StoreClient>(std::move(options));
  wait_log_.emplace(*client_, config.self);
  push_memory_.emplace(*client_);
  client_->join();
  if (!join_until(SteadyClock::now() + config.kvstore.start_wait)) {
    std::string why = "worker " + config.self +
                      ": the servers and the workers that the first step " +
                      "waits for are not there within kvstore.start_wait_ms";
    for (const std::string& problem : client_->problems()) why += "; " + problem;
    throw KVStoreError(why);
  }
  computes(true);
}

// The others need not find out that it is gone.
DistStore::~DistStore() {
  client_->leave(SteadyClock::now() + leave_limit);
}

void DistStore::reload_security() {
  if (!security_) return;
  if (const auto why = security_->reload())
    throw KVStoreError("worker " + config_.self + ": the keys stay as they were: " + *why);
}

std::string_view DistStore::type() const {
  return config::name_in(config::kvstore_type_words, config_.kvstore.type);
}

int DistStore::rank() const {
  const auto workers = client_->workers();
  const auto self = std::ranges::find(workers, config_.self);
  if (self != workers.end()) rank_ = static_cast<int>(self - workers.begin());
  return rank_;
}

int DistStore::num_workers() const {
  return static_cast<int>(client_->workers().size());
}

int DistStore::num_dead_node(std::chrono::milliseconds silent_for) const {
  // They had been silent for lost_after when they were left out.
  return static_cast<int>(
      client_->gone(silent_for - std::chrono::duration_cast<Duration>(config_.kvstore.lost_after)));
}

std::uint64_t DistStore::dropped_pushes() {
  for (const auto& [key, value] : values_) {
    for (const auto& push : value.pushes) look_at(*push);
  }
  return dropped_;
}

void DistStore::barrier() {
  check_takes_part();
  // Needed for types whose pulls wait for nobody: a pull after a barrier sees the pushes before it.
  if (!rules_.merged) finish_pushes();
  ++barriers_;
  pushed_in_step_.clear();
  wait(client_->barrier(), "barrier number " + std::to_string(barriers_));
}

void DistStore::init(const std::vector<KeyedTensors>& values) {
  const std::vector<ValueSpec> specs = specs_.check_new(values);
  check_takes_part();
  std::vector<Ticket> tickets;
  for (std::size_t i = 0; i < values.size(); ++i) {
    at::Tensor dense = dense_on(values[i].tensors[0], at::kCPU);
    tickets.push_back(client_->init(values[i].key, specs[i], const_bytes_of(dense)));
  }
  std::optional<std::string> refused;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Outcome outcome = wait(
        tickets[i], "the init of key " + values[i].key.text() + ": the value of the first worker" +
                        (rules_.merged ? ", and the next step of the others" : ""));
    if (is_error(outcome.kind)) {
      client_->forget(values[i].key);
      if (!refused) refused = outcome.problem;
      continue;
    }
    specs_.add(values[i].key, specs[i]);
    push_memory_->add(values[i].key, specs[i]);
    values_[values[i].key].next_step = outcome.next_step;
    clock_ = std::max(clock_, outcome.next_step);
  }
  if (refused) throw KVStoreError(*refused);
}

void DistStore::check_push(const std::vector<KeyedTensors>& values) const {
  for (const KeyedTensors& one : values) specs_.check(one, "push");
  if (rules_.merged || optimizer_) return;
  throw KVStoreError("push of worker " + config_.self + ": type " + std::string(type()) +
                     " makes an update at each push, which needs an optimizer; call set_optimizer "
                     "before the first push");
}

void DistStore::note_step(const std::vector<KeyedTensors>& values) {
  const auto again = [&](const KeyedTensors& one) { return pushed_in_step_.contains(one.key); };
  if (pushed_in_step_.empty() || std::ranges::any_of(values, again)) {
    pushed_in_step_.clear();
    client_->begin_step();
  }
  for (const KeyedTensors& one : values) pushed_in_step_.insert(one.key);
}

// Compressed values are sent in memory of the client.
at::Tensor DistStore::memory_for(const Key& key) {
  const DType dtype = specs_.all().at(key).dtype;
  if (compression_of(compression_.type, dtype) != Compression::none) return {};
  return push_memory_->take(key);
}

DistStore::Pushes DistStore::begin_push(const std::vector<KeyedTensors>& values, int priority,
                                        bool want_values) {
  check_takes_part();
  note_step(values);
  Pushes pushes;
  for (const auto& [key, tensors] : with_keys_once(values)) {
    Value& value = values_.at(key);
    reap(value);
    while (value.pushes.size() >= most_pushes_under_way) {
      finish(value.pushes.front());
      reap(value);
    }
    auto push = std::make_shared<PushUnderWay>();
    push->key = key;
    push->step = value.next_step++;
    push->memory = sum_of(tensors, memory_for(key));
    push->wants_value = want_values;
    kvclient::PushTerms terms;
    terms.step = push->step;
    terms.wants_value = want_values;
    terms.optimizer = encoded_optimizer_;
    push->ticket = client_->push(key, const_bytes_of(push->memory), std::move(terms), priority);
    value.pushes.push_back(push);
    pushes.push_back(std::move(push));
    clock_ = std::max(clock_, value.next_step);
  }
  computes(true);
  return pushes;
}

std::unique_ptr<Call> DistStore::push(const std::vector<KeyedTensors>& values, int priority) {
  check_push(values);
  return std::make_unique<DistPush>(*this, begin_push(values, priority, /*want_values=*/false));
}

std::unique_ptr<Call> DistStore::pull(const std::vector<KeyedTensors>& outs, int priority) {
  specs_.check_pull(outs);
  check_takes_part();
  for (const KeyedTensors& one : outs) reap(values_.at(one.key));
  return std::make_unique<DistPull>(*this, outs, priority, Pushes{});
}

std::unique_ptr<Call> DistStore::pushpull(const std::vector<KeyedTensors>& values,
                                          const std::vector<KeyedTensors>& outs, int priority) {
  specs_.check_pull(outs);
  check_push(values);
  // With merged pushes the value comes with the answer. Otherwise it may have to wait for others.
  Pushes pushes = begin_push(values, priority, rules_.merged);
  if (!rules_.merged) pushes.clear();
  return std::make_unique<DistPull>(*this, outs, priority, std::move(pushes));
}

at::Tensor DistStore::row_sparse_pull(const Key& key, const at::Tensor& row_ids, int priority) {
  specs_.check_rows(key, row_ids);
  const ValueSpec& spec = specs_.all().at(key);
  std::vector<std::int64_t> sizes;
  for (const std::uint64_t extent : spec.shape) sizes.push_back(static_cast<std::int64_t>(extent));
  const at::Tensor whole = at::empty(sizes, at::TensorOptions(to_scalar_type(spec.dtype)));
  pull({{key, {whole}}}, priority)->wait();
  return rows_of(whole, row_ids);
}

void DistStore::set_updater(Updater) {
  throw KVStoreError(
      "type " + std::string(type()) +
      " cannot run an updater of a program: no code is sent to servers. Use set_optimizer, or "
      "pull the sums and update them here (kvstore.type dist_sync)");
}

void DistStore::set_optimizer(const OptimizerOptions& options) {
  if (const auto problem = options_problem(options)) throw KVStoreError(*problem);
  optimizer_ = options;
  const auto form = encode(options);
  encoded_optimizer_.assign(form.begin(), form.end());
}

void DistStore::set_compression(const CompressionOptions& options) {
  if (const auto problem = compression_problem(options)) throw KVStoreError(*problem);
  client_->set_compression(options);
  compression_ = options;
}

}  // namespace dpwa::kvstore
