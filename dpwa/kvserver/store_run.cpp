#include "dpwa/kvserver/store_run.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "dpwa/config/keys.h"
#include "dpwa/config/names.h"
#include "dpwa/config/text.h"
#include "dpwa/kvserver/server_status.h"
#include "dpwa/kvstore/beat_interval.h"
#include "dpwa/kvstore/lost_words.h"
#include "dpwa/log/events.h"
#include "dpwa/log/log.h"
#include "dpwa/net/coroutine.h"
#include "dpwa/net/node_handlers.h"
#include "dpwa/net/server.h"
#include "dpwa/snapshot/reused_memory.h"

namespace dpwa::kvserver {

namespace asio = boost::asio;
using SteadyClock = std::chrono::steady_clock;

namespace {

constexpr auto between_ticks = std::chrono::milliseconds(25);
constexpr int ticks_to_tell = 40;  // several beats
constexpr int ticks_to_hear = 16;
constexpr int ticks_between_looks = 4;  // at who sends something
constexpr auto for_last_snapshot = std::chrono::seconds(3);
constexpr auto between_words_of_waiting = std::chrono::seconds(30);

std::vector<std::string> server_names(const Config& config) {
  std::vector<std::string> names;
  for (const NodeEntry& server : config.kvstore.servers) names.push_back(server.name);
  return names;
}

// All processes that may call: the workers and the other servers.
std::vector<std::string> callers(const Config& config) {
  std::vector<std::string> names;
  for (const NodeEntry& node : config.nodes) names.push_back(node.name);
  for (const NodeEntry& server : config.kvstore.servers) {
    if (server.name != config.self) names.push_back(server.name);
  }
  return names;
}

ServerOptions options_for(const Config& config) {
  ServerOptions options = server_options(config, *config.self_server());
  // The window of a worker already bounds its requests, and a small key may be pushed very often.
  options.max_requests_per_second = 0;
  return options;
}

kvstore::ServerEngineOptions engine_options(const Config& config) {
  const KvstoreConfig& store = config.kvstore;
  kvstore::ServerEngineOptions options;
  options.shard = store_rules(config);
  options.snapshots = !store.snapshots.folder.empty();
  options.settings = config::shared_settings(config, "kvstore");
  options.shard.memory_bytes = store.memory_bytes;
  options.watch.min_workers = first_workers(config);
  options.watch.silent_after = store.lost_after;
  options.beat = kvstore::beat_interval(store.lost_after);
  return options;
}

}  // namespace

StoreRun::StoreRun(const Config& config, std::uint64_t incarnation)
    : config_(config),
      endpoint_(
          config, *config.self_server(),
          std::make_unique<LocalProcess>(config.cluster, config.self, incarnation, callers(config)),
          options_for(config)),
      engine_(engine_options(config), {config.self, incarnation}, server_names(config),
              SteadyClock::now()),
      timer_(endpoint_.io()),
      told_waiting_(SteadyClock::now()) {
  LocalProcess& local = endpoint_.local();
  Server& server = endpoint_.server();
  asio::io_context& io = endpoint_.io();
  local.state = wire::NodeState::ready;
  if (config.transport.same_host) {
    share_reused_memory();
    shared_memory_ = std::make_unique<SharedMemoryServer>(io, local);
    if (!shared_memory_->listen()) shared_memory_.reset();
  }
  if (shared_memory_) server.offer_memory(shared_memory_->offer());
  const std::vector<std::string> names = server_names(config);
  auto handler = std::make_unique<StoreHandler>(
      std::set<std::string>(names.begin(), names.end()),
      [this](const kvstore::MemberId& from, std::uint64_t tag, kvstore::Message message) {
        receive(from, tag, std::move(message));
      },
      shared_memory_.get(),
      [this](const kvstore::MemberId& worker) {
        return engine_.refusal(worker, SteadyClock::now());
      },
      [this](const kvstore::MemberId& worker) {
        // One that only waits to take part has given up, or comes again.
        if (!engine_.epoch().has(worker)) engine_.lost(worker, SteadyClock::now());
      });
  handler_ = handler.get();
  server.add(std::move(handler));
  endpoint_.serve_status([this]() -> asio::awaitable<std::string> { co_return status(); });
  if (!config.kvstore.snapshots.folder.empty()) {
    snapshots_ = std::make_unique<SnapshotKeeper>(io, config, engine_, SteadyClock::now());
  }
  for (const NodeEntry& server : config.kvstore.servers) {
    if (server.name == config.self) continue;
    links_[server.name] = std::make_shared<Link>(
        io, local, peer_address(server),
        [this](const kvstore::MemberId& member) { engine_.lost(member, SteadyClock::now()); });
  }
}

StoreRun::~StoreRun() = default;

std::string StoreRun::status() {
  const TimePoint now = SteadyClock::now();
  std::optional<kvstore::SnapshotStatus> snapshots;
  if (snapshots_) snapshots = snapshots_->status(now);
  return server_status(endpoint_.local(), engine_,
                       config::name_in(config::kvstore_type_words, config_.kvstore.type),
                       config_.kvstore.memory_bytes, snapshots, now);
}

void StoreRun::run() {
  thread_.check();
  if (shared_memory_) shared_memory_->serve();
  for (const auto& [name, link] : links_) link->start();
  asio::co_spawn(endpoint_.io(), tick(), net::rethrow);
  endpoint_.run();
}

void StoreRun::stop() {
  asio::post(endpoint_.io(), [this] {
    for (const auto& [name, link] : links_) link->expect_end();
    ends_at_ = SteadyClock::now() + for_last_snapshot;
    if (!snapshots_ || !snapshots_->last_is_due()) end();
  });
}

void StoreRun::end() {
  thread_.check();
  if (ended_) return;
  ended_ = true;
  timer_.cancel();
  for (const auto& [name, link] : links_) link->stop();
  endpoint_.stop_serving();
  if (shared_memory_) shared_memory_->stop();
}

asio::awaitable<void> StoreRun::tick() {
  for (int ticks = 1; !ended_; ++ticks) {
    if (ticks % ticks_between_looks == 0) {
      for (const auto& [member, bytes] : handler_->arrivals())
        engine_.sends(member, bytes, SteadyClock::now());
      handler_->end_overdue(SteadyClock::now());
    }
    engine_.tick(SteadyClock::now());
    if (snapshots_) {
      snapshots_->tick(SteadyClock::now());
    } else {
      engine_.take_captured();  // for a member that makes up snapshots
    }
    deliver();
    // The other servers hear that this one has its part.
    if (ends_at_ && !snapshots_->last_is_due()) ++ticks_since_last_;
    if (ends_at_ && (ticks_since_last_ > ticks_to_hear || SteadyClock::now() >= *ends_at_)) {
      end();
      co_return;
    }
    if (snapshots_ && snapshots_->refusal()) {
      refused_ = true;
      log(LogLevel::error, "kvserver", *snapshots_->refusal());
      end();
      co_return;
    }
    for (const std::string& line : engine_.take_complaints())
      log(complaints_, line, LogLevel::warn, "kvserver", line);
    // The other server hears of the settings of this one first, and ends as well.
    if (engine_.refusal() && ++ticks_refused_ > ticks_to_tell) {
      refused_ = true;
      log(LogLevel::error, "kvserver", *engine_.refusal());
      end();
      co_return;
    }
    if (engine_.deposed()) {
      deposed_ = true;
      end();
      co_return;
    }
    note_changes();
    note_waiting(SteadyClock::now());
    timer_.expires_after(between_ticks);
    co_await timer_.async_wait(net::as_result);
  }
}

void StoreRun::receive(const kvstore::MemberId& from, std::uint64_t tag, kvstore::Message message) {
  thread_.check();
  engine_.receive(from, tag, std::move(message), SteadyClock::now());
  deliver();
}

void StoreRun::deliver() {
  for (kvstore::Outgoing& each : engine_.take()) {
    const auto link = links_.find(each.to);
    if (link != links_.end()) {
      link->second->send(std::move(each.message));
    } else {
      handler_->send(each.to, each.tag, std::move(each.message));
    }
  }
}

// Before the first epoch: what this server waits for.
void StoreRun::note_waiting(TimePoint now) {
  if (engine_.epoch().number != 0 || now - told_waiting_ < between_words_of_waiting) return;
  told_waiting_ = now;
  std::vector<std::string> missing;
  for (const auto& [name, link] : links_) {
    if (!link->is_connected()) missing.push_back("'" + name + "'");
  }
  const std::size_t workers = first_workers(config_);
  std::string what = "the other servers and workers; the first step waits for " +
                     std::to_string(workers) + (workers == 1 ? " worker" : " workers") +
                     " (kvstore.min_workers)";
  if (!missing.empty())
    what = (missing.size() == 1 ? "server " : "servers ") + config::joined(missing);
  log(LogLevel::info, "kvserver", "waits for " + what);
}

// Logs which workers and servers left or came, and pushes that did not count.
void StoreRun::note_changes() {
  if (engine_.ended().number != 0 && !std::exchange(told_of_ended_run_, true)) {
    log(LogLevel::warn, "kvserver",
        "this server was started again and has lost the values of its workers' run: they continue "
        "from the newest snapshot if all servers were started again and have one, and end "
        "otherwise");
  }
  const auto has_left = [this](const kvstore::MemberId& worker) {
    return engine_.has_left(worker);
  };
  for (const EpochLine& line : words_.look(engine_.epoch(), has_left))
    log_event(line.event, LogLevel::info, "kvserver", line.text);
  if (const auto names = engine_.started_again(SteadyClock::now());
      !names.empty() && !std::exchange(told_, true))
    log(LogLevel::error, "kvserver", "the run cannot continue: " + kvstore::words_for_lost(names));
  if (const auto names = engine_.take_replaced(); !names.empty())
    log(LogLevel::warn, "kvserver",
        "continues with the votes of the new processes of " + config::joined(names) +
            ": updates that only the former ones had are lost");
  const kvstore::ShardCounts& counts = engine_.shard().counts();
  if (counts.not_finite > counted_.not_finite) {
    log(LogLevel::warn, "kvserver",
        std::to_string(counts.not_finite) + " pushes so far were not finite and did not count");
  }
  counted_ = counts;
}

}  // namespace dpwa::kvserver
