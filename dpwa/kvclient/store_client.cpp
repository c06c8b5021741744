#include "dpwa/kvclient/store_client.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <chrono>
#include <stdexcept>
#include <utility>

#include "dpwa/base/thread_name.h"
#include "dpwa/kvstore/slices.h"
#include "dpwa/net/io_thread.h"
#include "dpwa/security/security.h"
#include "dpwa/snapshot/memory_file.h"

namespace dpwa::kvclient {

namespace asio = boost::asio;
using SteadyClock = std::chrono::steady_clock;

namespace {

std::vector<std::string> names_of(const std::vector<PeerAddress>& servers) {
  std::vector<std::string> names;
  for (const PeerAddress& server : servers) names.push_back(server.name);
  return names;
}

}  // namespace

StoreClient::StoreClient(StoreClientOptions options)
    : options_(std::move(options)),
      servers_(static_cast<std::uint32_t>(options_.servers.size())),
      compression_(options_.compression),
      work_(io_.get_executor()),
      engine_(options_.engine, options_.self, names_of(options_.servers)),
      ticks_(io_),
      incarnation_(options_.self.incarnation) {
  if (options_.servers.empty()) throw std::invalid_argument("a store without servers");
  LocalProcess& local = introduce(options_.self.incarnation);
  for (const PeerAddress& server : options_.servers) {
    links_.push_back(std::make_shared<ServerLink>(io_, local, server, options_.same_host,
                                                  static_cast<LinkEvents&>(*this)));
  }
  for (const auto& link : links_) link->start();
  asio::post(io_, [this] { tick(); });
  thread_ = start_background_thread([this] {
    name_thread("dpwa-store-tx");
    net::run_io(io_);
  });
}

LocalProcess& StoreClient::introduce(std::uint64_t incarnation) {
  LocalProcess& local = local_.emplace_back(options_.cluster, options_.self.name, incarnation,
                                            names_of(options_.servers));
  local.security = options_.security;
  return local;
}

StoreClient::~StoreClient() {
  asio::post(io_, [this] {
    stopped_ = true;
    ticks_.cancel();
    for (const auto& link : links_) link->stop();
    work_.reset();
  });
  thread_.join();
  take_memory_back();
}

void StoreClient::share(const AlignedBuffer& memory) {
  if (memory.file() == nullptr) return;
  post([this, memory] {
    shared_.push_back(memory);
    for (const auto& link : links_) link->share(memory);
  });
}

void StoreClient::post(std::function<void()> work) {
  {
    const MutexLock lock(calls_mutex_);
    calls_.push_back(std::move(work));
    if (calls_.size() > 1) return;
  }
  asio::post(io_, [this] { make_calls(); });
}

void StoreClient::make_calls() {
  io_thread_.check();
  std::vector<std::function<void()>> calls;
  {
    const MutexLock lock(calls_mutex_);
    calls = std::exchange(calls_, {});
  }
  for (const auto& call : calls) call();
  pump();
}

void StoreClient::join() {
  {
    const MutexLock lock(mutex_);
    left_out_again_ = false;
  }
  ask_to_join();
}

void StoreClient::ask_to_join() {
  post([this] {
    out_ = false;
    engine_.join();
    engine_.tick(SteadyClock::now());
  });
}

void StoreClient::leave(TimePoint until) {
  post([this] {
    engine_.leave();
    engine_.tick(SteadyClock::now());
  });
  MutexLock lock(mutex_);
  while (takes_part_ && changed_.wait_until(lock, until)) {
  }
}

void StoreClient::finish() {
  post([this] {
    engine_.finish();
    engine_.tick(SteadyClock::now());
  });
}

bool StoreClient::wait_end(TimePoint until) {
  MutexLock lock(mutex_);
  while (!none_trains_ && over_.empty() && changed_.wait_until(lock, until)) {
  }
  throw_if_over();
  return none_trains_;
}

std::optional<std::uint64_t> StoreClient::wait_joined(TimePoint until) {
  MutexLock lock(mutex_);
  while (!first_step_ && over_.empty()) {
    if (std::exchange(left_out_again_, false)) ask_to_join();
    if (!changed_.wait_until(lock, until)) break;
  }
  throw_if_over();
  return first_step_;
}

Ticket StoreClient::init(const kvstore::Key& key, const kvstore::ValueSpec& spec,
                         std::span<const std::byte> values, bool compresses) {
  const auto [held, added] = keys_.try_emplace(key);
  if (!added) {
    throw std::invalid_argument("key " + key.text() + " was initialised before, by worker " +
                                options_.self.name + ", as " + held->second.spec.text() +
                                "; now it has " + spec.text());
  }
  held->second.spec = spec;
  held->second.slices = kvstore::cut_into_slices(key, spec.elements(), servers_);
  held->second.compresses = compresses;
  compress(held->second);
  const Ticket ticket = next_ticket_++;
  const auto slices = static_cast<std::uint32_t>(held->second.slices.size());
  post([this, key, spec, slices, ticket, copy = kvstore::Bytes(values.begin(), values.end())] {
    operations_.begin(ticket, Operations::Kind::init, key, 0, slices, false);
    engine_.init(key, spec, copy);
  });
  return ticket;
}

void StoreClient::compress(Held& held) const {
  const auto type = kvstore::compression_of(compression_.type, held.spec.dtype);
  if (!held.compresses || type == kvstore::Compression::none) return held.compressors.clear();
  for (kvstore::Compressor& each : held.compressors) each.change(compression_);
  if (!held.compressors.empty()) return;
  for (const kvstore::Slice& slice : held.slices)
    held.compressors.emplace_back(compression_, held.spec.dtype, slice.elements.count);
}

void StoreClient::set_compression(const kvstore::CompressionOptions& options) {
  compression_ = options;
  for (auto& [key, held] : keys_) compress(held);
}

void StoreClient::forget(const kvstore::Key& key) {
  keys_.erase(key);
  post([this, key] { engine_.forget(key); });
}

Ticket StoreClient::ask_states(const kvstore::Key& key) {
  return states(key, std::vector<kvstore::StateMessage>(keys_.at(key).slices.size()));
}

Ticket StoreClient::place_states(const kvstore::Key& key,
                                 std::vector<kvstore::StateMessage> states) {
  for (kvstore::StateMessage& state : states) state.kind = kvstore::StateMessage::Kind::place;
  return this->states(key, std::move(states));
}

Ticket StoreClient::states(const kvstore::Key& key, std::vector<kvstore::StateMessage> messages) {
  const Ticket ticket = next_ticket_++;
  post([this, key, ticket, messages = std::move(messages)]() mutable {
    const auto slices = static_cast<std::uint32_t>(messages.size());
    operations_.begin(ticket, Operations::Kind::state, key, 0, slices, false);
    if (out_) return left_out();
    for (std::uint32_t index = 0; index < slices; ++index) {
      messages[index].slice = {key, index};
      engine_.state(std::move(messages[index]));
    }
  });
  return ticket;
}

Ticket StoreClient::barrier() {
  const Ticket ticket = next_ticket_++;
  post([this, ticket, count = ++barriers_] {
    operations_.begin_barrier(ticket, count);
    engine_.reach_barrier();
  });
  return ticket;
}

std::vector<std::span<std::byte>> StoreClient::cut(const kvstore::Key& key, const Held& held,
                                                   std::span<std::byte> into) {
  std::vector<std::span<std::byte>> parts;
  if (into.empty()) return parts;
  if (into.size() != held.spec.bytes())
    throw std::invalid_argument("key " + key.text() + ": memory of " + std::to_string(into.size()) +
                                " bytes for a value of " + std::to_string(held.spec.bytes()));
  const std::size_t size = size_of(held.spec.dtype);
  for (const kvstore::Slice& slice : held.slices)
    parts.push_back(into.subspan(slice.elements.from * size, slice.elements.count * size));
  return parts;
}

Ticket StoreClient::push(const kvstore::Key& key, std::span<const std::byte> lent, PushTerms terms,
                         int priority) {
  Held& held = keys_.at(key);
  if (lent.size() != held.spec.bytes())
    throw std::invalid_argument("push of key " + key.text() + ": " + std::to_string(lent.size()) +
                                " bytes, where " + held.spec.text() + " has " +
                                std::to_string(held.spec.bytes()));
  const std::size_t size = size_of(held.spec.dtype);
  auto targets = cut(key, held, terms.wants_value ? terms.into : std::span<std::byte>());
  std::vector<kvstore::Push> pushes;
  for (std::uint32_t index = 0; index < held.slices.size(); ++index) {
    const auto& elements = held.slices[index].elements;
    const auto part = lent.subspan(elements.from * size, elements.count * size);
    kvstore::Push push;
    push.slice = {key, index};
    push.step = terms.step;
    push.weight = terms.weight;
    push.merge = terms.merge;
    push.wants_value = terms.wants_value;
    push.optimizer = terms.optimizer;
    if (held.compressors.empty()) {
      push.lent = {part};
    } else {
      kvstore::Compressor& compressor = held.compressors[index];
      push.compression = compressor.type();
      if (push.weight > 0) {
        push.values.resize(compressor.bytes());
        compressor.compress(part, push.values);
      } else {  // what does not count must not take the residual along
        push.values.assign(compressor.bytes(), std::byte{});
      }
    }
    pushes.push_back(std::move(push));
  }
  const Ticket ticket = next_ticket_++;
  post(
      [this, ticket, priority, pushes = std::move(pushes), targets = std::move(targets)]() mutable {
        const kvstore::Push& first = pushes.front();
        if (targets.empty()) {
          operations_.begin(ticket, Operations::Kind::push, first.slice.key, first.step,
                            static_cast<std::uint32_t>(pushes.size()), first.wants_value);
        } else {
          operations_.begin(ticket, Operations::Kind::push, first.slice.key, first.step,
                            std::move(targets));
        }
        if (out_) return left_out();
        for (kvstore::Push& push : pushes) engine_.push(std::move(push), priority);
      });
  return ticket;
}

void StoreClient::begin_step() {
  post([this] { engine_.begin_step(); });
}

Ticket StoreClient::pull(const kvstore::Key& key, std::uint64_t clock, int priority,
                         std::uint64_t known_version, std::span<std::byte> into) {
  const Held& held = keys_.at(key);
  auto targets = cut(key, held, into);
  const Ticket ticket = next_ticket_++;
  const auto slices = static_cast<std::uint32_t>(held.slices.size());
  post([this, key, clock, slices, ticket, priority, known_version,
        targets = std::move(targets)]() mutable {
    if (targets.empty()) {
      operations_.begin(ticket, Operations::Kind::pull, key, clock, slices, true);
    } else {
      operations_.begin(ticket, Operations::Kind::pull, key, clock, std::move(targets));
    }
    if (out_) return left_out();
    for (std::uint32_t index = 0; index < slices; ++index)
      engine_.pull({0, {key, index}, clock, known_version}, priority);
  });
  return ticket;
}

void StoreClient::at(std::uint64_t clock, bool waiting) {
  post([this, clock, waiting, now = SteadyClock::now()] { engine_.at(clock, waiting, now); });
}

std::optional<Outcome> StoreClient::wait(Ticket ticket, TimePoint until) {
  MutexLock lock(mutex_);
  auto found = done_.find(ticket);
  while (found == done_.end() && over_.empty()) {
    awaited_ = ticket;
    const bool in_time = changed_.wait_until(lock, until);
    awaited_.reset();
    found = done_.find(ticket);
    if (!in_time) break;
  }
  if (found == done_.end()) {
    throw_if_over();
    return std::nullopt;
  }
  Outcome outcome = std::move(found->second);
  done_.erase(found);
  return outcome;
}

void StoreClient::throw_if_over() const {
  if (!over_.empty()) throw std::runtime_error(over_);
}

std::string StoreClient::why_left_out() const {
  const MutexLock lock(mutex_);
  throw_if_over();
  return why_left_out_;
}

bool StoreClient::takes_part() const {
  const MutexLock lock(mutex_);
  return takes_part_;
}

std::size_t StoreClient::gone(Duration silent_for) const {
  const TimePoint now = SteadyClock::now();
  const MutexLock lock(mutex_);
  return static_cast<std::size_t>(std::ranges::count_if(
      gone_since_, [&](const auto& each) { return now - each.second >= silent_for; }));
}

bool StoreClient::uses_memory() const {
  const MutexLock lock(mutex_);
  return uses_memory_;
}

std::vector<kvstore::WorkerEntry> StoreClient::members() const {
  const MutexLock lock(mutex_);
  return workers_;
}

std::vector<std::string> StoreClient::workers() const {
  const MutexLock lock(mutex_);
  std::vector<std::string> names;
  for (const kvstore::WorkerEntry& worker : workers_) names.push_back(worker.id.name);
  return names;
}

std::vector<std::string> StoreClient::left() const {
  const MutexLock lock(mutex_);
  return left_;
}

std::optional<StoreClient::Refusal> StoreClient::refusal() const {
  const MutexLock lock(mutex_);
  return refusal_;
}

std::vector<std::string> StoreClient::problems() const {
  const MutexLock lock(mutex_);
  return problems_;
}

std::uint64_t StoreClient::incarnation() const {
  const MutexLock lock(mutex_);
  return incarnation_;
}

ValueTraffic StoreClient::traffic() const {
  const MutexLock lock(mutex_);
  return traffic_;
}

}  // namespace dpwa::kvclient
