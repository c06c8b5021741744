#include "dpwa/kvworker/dist_store.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "dpwa/config/names.h"
#include "dpwa/kvclient/client_options.h"
#include "dpwa/kvstore/slices.h"
#include "dpwa/kvworker/error.h"
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

std::vector<Slice> slices_of(const Key& key, const ValueSpec& spec, const Config& config) {
  return cut_into_slices(key, spec.elements(),
                         static_cast<std::uint32_t>(config.kvstore.servers.size()));
}

}  // namespace

DistStore::DistStore(const Config& config, std::shared_ptr<std::atomic<bool>> broken_off)
    : config_(config),
      rules_(store_rules(config)),
      security_(make_security(config)),
      specs_(config.self),
      compression_(config.kvstore.compression),
      broken_off_(std::move(broken_off)) {
  check_file(config);
  kvclient::StoreClientOptions options = kvclient::client_options(config, security_);
  options.engine.own_steps = true;
  client_ = std::make_unique<kvclient::StoreClient>(std::move(options));
  wait_log_.emplace(*client_, config.self);
  push_memory_.emplace(*client_);
  client_->join();
  try {
    if (!join_until(SteadyClock::now() + config.kvstore.start_wait)) {
      std::string why = "worker " + config.self +
                        ": the servers and the workers that the first step " +
                        "waits for are not there within kvstore.start_wait_ms";
      for (const std::string& problem : client_->problems()) why += "; " + problem;
      throw KVStoreError(why);
    }
  } catch (...) {
    leave();
    throw;
  }
  computes(true);
}

// The others need not find out that it is gone.
DistStore::~DistStore() {
  leave();
}

void DistStore::leave() {
  if (!std::exchange(left_, true)) client_->leave(SteadyClock::now() + leave_limit);
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

void DistStore::init(const std::vector<First>& values) {
  KeySpecs::KeyedSpecs specs;
  for (const First& each : values) specs.emplace_back(each.key, each.spec);
  specs_.check_new(specs);
  check_takes_part();
  std::vector<Ticket> tickets;
  for (const First& each : values)
    tickets.push_back(client_->init(each.key, each.spec, each.values));
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
    specs_.add(values[i].key, values[i].spec);
    push_memory_->add(values[i].key, values[i].spec);
    values_[values[i].key].next_step = outcome.next_step;
    clock_ = std::max(clock_, outcome.next_step);
  }
  if (refused) throw KVStoreError(*refused);
}

void DistStore::check_push(const std::vector<Pushed>& values) const {
  for (const Pushed& one : values) specs_.check(one.key, one.spec, "push");
  if (rules_.merged || optimizer_) return;
  throw KVStoreError("push of worker " + config_.self + ": type " + std::string(type()) +
                     " makes an update at each push, which needs an optimizer; call set_optimizer "
                     "before the first push");
}

void DistStore::check_pull(const std::vector<Wanted>& wanted) const {
  for (const Wanted& one : wanted) specs_.check(one.key, one.spec, "pull");
}

void DistStore::note_step(const std::vector<Pushed>& values) {
  const auto again = [&](const Pushed& one) { return pushed_in_step_.contains(one.key); };
  if (pushed_in_step_.empty() || std::ranges::any_of(values, again)) {
    pushed_in_step_.clear();
    client_->begin_step();
  }
  for (const Pushed& one : values) pushed_in_step_.insert(one.key);
}

// What a server of this host reads where it is; compressed values are sent in memory of the client.
PushMemory::Taken DistStore::memory_for(const Pushed& value) {
  if (compression_of(compression_.type, value.spec.dtype) == Compression::none) {
    if (auto taken = push_memory_->take(value.key)) return taken;
  }
  const std::size_t bytes = value.spec.bytes();
  const auto memory = std::make_shared_for_overwrite<std::byte[]>(bytes);
  return {{memory.get(), bytes}, memory};
}

DistStore::Pushes DistStore::begin_push(const std::vector<Pushed>& values, int priority,
                                        bool want_values) {
  check_takes_part();
  for (const Pushed& each : values) {  // what throws, before anything leaves
    Value& value = values_.at(each.key);
    reap(value);
    while (value.pushes.size() >= most_pushes_under_way) {
      finish(value.pushes.front());
      reap(value);
    }
  }
  note_step(values);
  Pushes pushes;
  for (const Pushed& each : values) {
    const Key& key = each.key;
    Value& value = values_.at(key);
    auto push = std::make_shared<PushUnderWay>();
    push->key = key;
    push->step = value.next_step++;
    push->memory = memory_for(each);
    each.write(push->memory.bytes);
    push->wants_value = want_values;
    kvclient::PushTerms terms;
    terms.step = push->step;
    terms.wants_value = want_values;
    terms.optimizer = encoded_optimizer_;
    push->ticket = client_->push(key, push->memory.bytes, std::move(terms), priority);
    value.pushes.push_back(push);
    pushes.push_back(std::move(push));
    clock_ = std::max(clock_, value.next_step);
  }
  computes(true);
  return pushes;
}

std::unique_ptr<Call> DistStore::push(const std::vector<Pushed>& values, int priority) {
  check_push(values);
  return std::make_unique<DistPush>(*this, begin_push(values, priority, /*want_values=*/false));
}

std::unique_ptr<Call> DistStore::pull(const std::vector<Wanted>& wanted, int priority) {
  check_pull(wanted);
  check_takes_part();
  for (const Wanted& one : wanted) reap(values_.at(one.key));
  return std::make_unique<DistPull>(*this, wanted, priority, Pushes{});
}

std::unique_ptr<Call> DistStore::pushpull(const std::vector<Pushed>& values,
                                          const std::vector<Wanted>& wanted, int priority) {
  check_pull(wanted);
  check_push(values);
  // With merged pushes the value comes with the answer. Otherwise it may have to wait for others.
  Pushes pushes = begin_push(values, priority, rules_.merged);
  if (!rules_.merged) pushes.clear();
  return std::make_unique<DistPull>(*this, wanted, priority, std::move(pushes));
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

SavedStates DistStore::states() {
  if (!optimizer_) throw KVStoreError("optimizer states of a store without an optimizer");
  check_takes_part();
  finish_pushes();
  std::vector<std::pair<Key, Ticket>> asked;
  for (const auto& [key, spec] : specs_.all()) asked.emplace_back(key, client_->ask_states(key));
  SavedStates states{*optimizer_, {}};
  std::string refused;
  for (const auto& [key, ticket] : asked) {
    const Outcome outcome = wait(ticket, "the optimizer states of key " + key.text());
    if (outcome.left_out) refused = "worker " + config_.self + " was left out meanwhile";
    if (is_error(outcome.kind)) refused = outcome.problem;
    const ValueSpec& spec = specs_.all().at(key);
    const auto slices = slices_of(key, spec, config_);
    for (std::size_t i = 0; refused.empty() && i < slices.size(); ++i) {
      const StateMessage& given = outcome.states.at(i);
      if (given.optimizer.empty()) continue;  // no update yet
      auto state = OptimizerState::restored(*optimizer_, spec.dtype, slices[i].elements.count,
                                            given.steps, given.state);
      const auto options = decode_options(given.optimizer);
      if (!state || !options || options->kind != optimizer_->kind) {
        refused = specs_.call_of("save", key) + last_by_another;
        break;
      }
      states.ranges.push_back({key, spec.dtype, slices[i].elements, *std::move(state)});
    }
  }
  if (!refused.empty()) throw KVStoreError(refused);
  return states;
}

void DistStore::load(const SavedStates& states) {
  const OptimizerOptions options = options_to_load(optimizer_, states);
  const auto form = encode(options);
  std::map<Key, std::vector<StateMessage>> placed;
  for (const SavedRange& range : states.ranges) {
    if (placed.contains(range.key)) continue;
    const ValueSpec& spec = specs_.at(range.key, specs_.call_of("load", range.key));
    for (const Slice& slice : slices_of(range.key, spec, config_)) {
      try {
        const OptimizerState state = state_of_range(states, range.key, spec.dtype, slice.elements);
        StateMessage message;
        message.optimizer.assign(form.begin(), form.end());
        message.steps = state.steps();
        message.state.assign(state.bytes().begin(), state.bytes().end());
        placed[range.key].push_back(std::move(message));
      } catch (const std::invalid_argument& mismatch) {
        throw KVStoreError(mismatch.what());
      }
    }
  }
  check_takes_part();
  finish_pushes();
  std::vector<Ticket> tickets;
  for (auto& [key, messages] : placed)
    tickets.push_back(client_->place_states(key, std::move(messages)));
  std::string refused;
  for (const Ticket ticket : tickets) {
    const Outcome outcome = wait(ticket, "the servers to place optimizer states");
    if (outcome.left_out) refused = "worker " + config_.self + " was left out meanwhile";
    if (is_error(outcome.kind)) refused = outcome.problem;
  }
  if (!refused.empty()) throw KVStoreError(refused);
  set_optimizer(options);
}

}  // namespace dpwa::kvstore
