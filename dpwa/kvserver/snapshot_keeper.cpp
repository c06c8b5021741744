#include "dpwa/kvserver/snapshot_keeper.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <chrono>
#include <utility>

#include "dpwa/base/thread_failure.h"
#include "dpwa/base/thread_name.h"
#include "dpwa/net/io_thread.h"

namespace dpwa::kvserver {

using kvstore::SnapshotId;
using SteadyClock = std::chrono::steady_clock;

namespace {

std::string folder_of(const Config& config) {
  std::string folder = config.kvstore.snapshots.folder;
  constexpr std::string_view name = "{name}";
  for (auto at = folder.find(name); at != std::string::npos; at = folder.find(name, at)) {
    folder.replace(at, name.size(), config.self);
    at += config.self.size();
  }
  return folder;
}

std::string named(const SnapshotId& id) {
  return "snapshot " + std::to_string(id.number);
}

}  // namespace

SnapshotHead snapshot_head_of(const Config& config) {
  const auto& servers = config.kvstore.servers;
  const auto self = std::ranges::find(servers, config.self, &NodeEntry::name);
  SnapshotHead head;
  head.type = config.kvstore.type;
  head.merged = store_rules(config).merged;
  head.servers = static_cast<std::uint16_t>(servers.size());
  head.place = static_cast<std::uint16_t>(self - servers.begin());
  head.cluster = config.cluster;
  head.server = config.self;
  return head;
}

SnapshotKeeper::SnapshotKeeper(boost::asio::io_context& io, const Config& config,
                               kvstore::ServerEngine& engine, TimePoint now)
    : io_(io),
      engine_(engine),
      keep_(config.kvstore.snapshots.keep),
      own_(snapshot_head_of(config)),
      folder_(folder_of(config), own_),
      schedule_(config.kvstore.snapshots.every, now) {
  if (const auto problem = folder_.problem()) {
    fail_at_key(config, "kvstore.snapshots.folder",
                *problem + "; accepted: a folder that this user may write, or a path to make one");
  }
  on_disk([this]() -> std::function<void()> {
    auto contents = std::make_shared<SnapshotFolder::Contents>(folder_.look(stop_));
    return [this, contents] { take_up(std::move(*contents)); };
  });
  thread_ = start_background_thread(
      [this] { run_or_end("the thread of the snapshots", [this] { serve_disk(); }); });
}

SnapshotKeeper::~SnapshotKeeper() {
  stop_ = true;
  {
    const MutexLock lock(mutex_);
    queue_.clear();
  }
  changed_.notify_all();
  thread_.join();
}

void SnapshotKeeper::on_disk(std::function<std::function<void()>()> work) {
  {
    const MutexLock lock(mutex_);
    queue_.push_back(std::move(work));
  }
  changed_.notify_all();
}

void SnapshotKeeper::serve_disk() {
  name_thread("dpwa-snapshots");
  while (true) {
    std::function<std::function<void()>()> work;
    {
      MutexLock lock(mutex_);
      while (queue_.empty() && !stop_) changed_.wait(lock);
      if (stop_) return;
      work = std::move(queue_.front());
      queue_.pop_front();
    }
    // The work is also destroyed on the I/O thread, because its slices share memory with the
    // engine.
    auto result = std::make_shared<std::function<void()>>(work());
    auto held = std::make_shared<decltype(work)>(std::move(work));
    boost::asio::post(io_, [result = std::move(result), held = std::move(held)] { (*result)(); });
  }
}

void SnapshotKeeper::warn(const std::string& line) {
  log(limiter_, "snapshot", LogLevel::warn, "kvserver", line);
}

void SnapshotKeeper::tick(TimePoint now) {
  io_thread_.check();
  if (refusal_) return;
  if (engine_.epoch().number == 0) return start(now);
  if (!engine_.epoch().has(engine_.self())) return;
  collect();
  complete(std::min(engine_.stored_everywhere(), written_));
  const SnapshotSchedule::View seen = view();
  schedule_.look(engine_.epoch(), seen, now);
  if (schedule_.due(engine_.epoch(), engine_.self().name, seen, now)) {
    const std::uint32_t number = engine_.begin_snapshot();
    schedule_.begins(number, engine_.epoch(), seen, now);
    log(LogLevel::debug, "kvserver", "snapshot " + std::to_string(number) + " begins");
  }
}

SnapshotSchedule::View SnapshotKeeper::view() const {
  return {engine_.shard().snapshot(),
          std::max(engine_.over_everywhere(), engine_.epoch().from.number),
          engine_.updates_everywhere(),
          engine_.stored_everywhere(),
          status_.number,
          engine_.knows_updates()};
}

bool SnapshotKeeper::last_is_due() const {
  return !refusal_ && schedule_.last_is_due(engine_.epoch(), view());
}

void SnapshotKeeper::start(TimePoint now) {
  if (engine_.loaded() || loading_) return;
  const auto start = engine_.start(now);
  if (!start) return;
  if (!start->problem.empty()) {
    refusal_ = start->problem +
               "; accepted: the missing files, or empty folders to begin from the first step";
    return;
  }
  const SnapshotId from = start->from;
  common_ = start->common;
  if (from.number == 0) return engine_.load({}, {});
  loading_ = true;
  on_disk([this, from]() -> std::function<void()> {
    auto loaded = std::make_shared<SnapshotResult<SnapshotFolder::Loaded>>(folder_.load(from));
    return [this, from, loaded] { take_up(from, std::move(*loaded)); };
  });
}

void SnapshotKeeper::take_up(SnapshotFolder::Contents contents) {
  io_thread_.check();
  for (const std::string& line : contents.damaged) log(LogLevel::warn, "kvserver", line);
  if (!contents.refusal.empty()) {
    refusal_ = contents.refusal + "; accepted: the snapshots of this server, or another folder";
    return;
  }
  engine_.set_stock(std::move(contents.held), contents.had_complete);
}

void SnapshotKeeper::take_up(const SnapshotId& id, SnapshotResult<SnapshotFolder::Loaded> loaded) {
  io_thread_.check();
  if (!loaded) {
    refusal_ = loaded.error() + ", although it was valid a moment ago";
    return;
  }
  const std::uint64_t clock = loaded->head.clock;
  const auto age = std::chrono::microseconds(wall_clock_us() - loaded->head.written_us);
  status_.number = status_.started_from = id.number;
  last_ = SteadyClock::now() - age;
  log(LogLevel::info, "kvserver",
      "starts from " + named(id) + " of run " + std::to_string(id.run) + ": " +
          std::to_string(loaded->part.size()) + " slices, step " + std::to_string(clock));
  engine_.load(id, std::move(loaded->part));
}

// A part is complete when every slice that workers find here has been captured. Parts of earlier
// snapshots then stay incomplete.
void SnapshotKeeper::collect() {
  for (kvstore::ShardEngine::Captured& each : engine_.take_captured()) {
    const kvstore::SliceId slice = each.slice;
    captured_[each.snapshot].insert_or_assign(slice, std::move(each));
  }
  const std::uint32_t number = engine_.shard().snapshot();
  captured_.erase(captured_.begin(), captured_.lower_bound(number));
  if (number <= written_ || number <= engine_.epoch().from.number) return;
  const bool all_up = std::ranges::all_of(engine_.epoch().servers, [](const auto& server) {
    return server.state == kvstore::ServerState::up;
  });
  if (all_up && captured_[number].size() == engine_.shard().primaries()) write(number);
}

void SnapshotKeeper::write(std::uint32_t number) {
  written_ = number;
  SnapshotHead head = own_;
  head.id = {engine_.epoch().run, number};
  head.written_us = wall_clock_us();
  Part part;
  for (auto& [id, slice] : captured_[number]) {
    head.clock = std::max(head.clock, slice.state.round);
    for (const auto& [name, clock] : slice.state.clocks) {
      head.clock = std::max(head.clock, clock.next);
    }
    part.push_back(std::move(slice));
  }
  head.slices = static_cast<std::uint32_t>(part.size());
  captured_.erase(number);
  on_disk([this, head, part = std::move(part), common = common_]() -> std::function<void()> {
    const auto problem = folder_.write(head, part, stop_, common);
    return [this, number = head.id.number, problem] {
      engine_.snapshot_over(number, !problem);
      status_.failing = problem.has_value();
      if (!problem) {
        stored_[number] = SteadyClock::now();
        return;
      }
      ++status_.failures;
      warn(*problem + "; training continues, and earlier snapshots are kept");
    };
  });
}

void SnapshotKeeper::complete(std::uint32_t number) {
  if (number <= completed_) return;
  const auto stored = stored_.find(number);
  if (stored == stored_.end()) return;
  completed_ = number;
  const SnapshotId id{engine_.epoch().run, number};
  on_disk([this, id, at = stored->second, common = common_]() -> std::function<void()> {
    const auto problem = folder_.complete(id, keep_, common);
    return [this, id, at, problem] {
      if (problem) return warn(*problem);
      status_.number = id.number;
      last_ = at;
      log(LogLevel::info, "kvserver", named(id) + " is on the disks of all servers");
    };
  });
  stored_.erase(stored_.begin(), std::next(stored));
}

SnapshotStatus SnapshotKeeper::status(TimePoint now) const {
  SnapshotStatus status = status_;
  if (status.number > 0) {
    status.age_s = std::max(0.0, std::chrono::duration<double>(now - last_).count());
  }
  return status;
}

}  // namespace dpwa::kvserver
