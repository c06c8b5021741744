#include "dpwa/kvserver/snapshot_keeper.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <chrono>
#include <utility>
#include <variant>

#include "dpwa/base/thread_failure.h"
#include "dpwa/base/thread_name.h"
#include "dpwa/log/events.h"
#include "dpwa/net/io_thread.h"

namespace dpwa::kvserver {

using kvstore::SnapshotId;
using kvstore::SnapshotPlan;
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
      own_(snapshot_head_of(config)),
      folder_(folder_of(config), own_),
      plan_(engine, config.kvstore.snapshots.every, config.kvstore.snapshots.keep, now) {
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
  const std::uint32_t before = engine_.shard().snapshot();
  for (SnapshotPlan::Wish& wish : plan_.tick(now))
    std::visit([this](auto& each) { perform(std::move(each)); }, wish);
  if (const std::uint32_t number = engine_.shard().snapshot(); number != before)
    log(LogLevel::debug, "kvserver", "snapshot " + std::to_string(number) + " begins");
}

void SnapshotKeeper::take_up(SnapshotFolder::Contents contents) {
  io_thread_.check();
  for (const std::string& line : contents.damaged) log(LogLevel::warn, "kvserver", line);
  if (!contents.refusal.empty()) {
    return plan_.refuse(contents.refusal +
                        "; accepted: the snapshots of this server, or another folder");
  }
  plan_.listed(std::move(contents.held), contents.had_complete);
}

void SnapshotKeeper::perform(SnapshotPlan::Load wish) {
  on_disk([this, id = wish.id]() -> std::function<void()> {
    auto loaded = std::make_shared<SnapshotResult<SnapshotFolder::Loaded>>(folder_.load(id));
    return [this, id, loaded] { take_up(id, std::move(*loaded)); };
  });
}

void SnapshotKeeper::take_up(const SnapshotId& id, SnapshotResult<SnapshotFolder::Loaded> loaded) {
  io_thread_.check();
  if (!loaded) return plan_.refuse(loaded.error() + ", although it was valid a moment ago");
  const auto age = std::chrono::microseconds(wall_clock_us() - loaded->head.written_us);
  log(LogLevel::info, "kvserver",
      "starts from " + named(id) + " of run " + std::to_string(id.run) + ": " +
          std::to_string(loaded->part.size()) + " slices, step " +
          std::to_string(loaded->head.clock));
  plan_.loaded(id, std::move(loaded->part), SteadyClock::now() - age);
}

void SnapshotKeeper::perform(SnapshotPlan::Write wish) {
  SnapshotHead head = own_;
  head.id = wish.id;
  head.written_us = wall_clock_us();
  for (const auto& slice : wish.part) {
    head.clock = std::max(head.clock, slice.state.round);
    for (const auto& [name, clock] : slice.state.clocks)
      head.clock = std::max(head.clock, clock.next);
  }
  head.slices = static_cast<std::uint32_t>(wish.part.size());
  on_disk([this, head, part = std::move(wish.part),
           retention = plan_.retention()]() -> std::function<void()> {
    const auto problem = folder_.write(head, part, stop_, retention);
    return [this, id = head.id, problem] {
      plan_.written(id, !problem, SteadyClock::now());
      if (problem) warn(*problem + "; training continues, and earlier snapshots are kept");
    };
  });
}

void SnapshotKeeper::perform(SnapshotPlan::Complete wish) {
  on_disk([this, wish, retention = plan_.retention()]() -> std::function<void()> {
    const auto problem = folder_.complete(wish.id, retention);
    return [this, wish, problem] {
      if (problem) return warn(*problem);
      plan_.completed(wish);
      log_event(EventKind::checkpoint, LogLevel::info, "kvserver",
                named(wish.id) + " is on the disks of all servers");
    };
  });
}

}  // namespace dpwa::kvserver
