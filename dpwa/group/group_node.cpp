#include "dpwa/group/group_node.h"

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdio>
#include <random>
#include <thread>
#include <utility>
#include <variant>

#include "dpwa/base/random.h"
#include "dpwa/base/thread_failure.h"
#include "dpwa/base/thread_name.h"
#include "dpwa/base/threads.h"
#include "dpwa/group/group_link.h"
#include "dpwa/group/kept_file.h"
#include "dpwa/log/log.h"
#include "dpwa/net/io_thread.h"
#include "dpwa/net/local_process.h"

namespace dpwa::group {

namespace asio = boost::asio;
using members::GroupEngine;
using SteadyClock = std::chrono::steady_clock;

namespace {

constexpr std::chrono::milliseconds between_ticks(50);
constexpr std::chrono::milliseconds shortest_beat(100);
// So that the beats of many processes take each of them less than half a percent of a core.
constexpr std::chrono::milliseconds beat_for_each_name(4);
constexpr int patience_in_beats = 3;
constexpr std::size_t longest_list = 200;  // of names in a line of the log

// Of connections that carry no parameters: the model does not matter to them.
struct GroupProcess : LocalProcess {
  using LocalProcess::LocalProcess;
  Fingerprint stated_fingerprint() const override { return {}; }
};

std::vector<std::string> names_of(const Config& config) {
  std::vector<std::string> names;
  for (const NodeEntry& node : config.nodes) names.push_back(node.name);
  return names;
}

std::uint64_t random_number() {
  std::random_device device;
  return (std::uint64_t{device()} << 32U) | device();
}

members::GroupEngineOptions options_of(const Config& config, Settings terms,
                                       std::size_t first_terms) {
  members::GroupEngineOptions options;
  options.beat = std::max<Duration>(shortest_beat, config.nodes.size() * beat_for_each_name);
  options.lost_after = config.collective.lost_after;
  options.judges_at_rest = config.collective.on_lost_rank != OnLostRank::stop;
  options.view.self = {config.self, 1, random_number()};
  options.view.names = names_of(config);
  options.view.patience = patience_in_beats * options.beat;
  options.view.seed = random_number();
  options.terms = std::move(terms);
  options.first_terms = first_terms;
  return options;
}

// Of this place in this cluster: with other nodes in the file it would be another cluster.
std::string file_of(const Config& config) {
  std::string all = config.cluster;
  for (const NodeEntry& node : config.nodes)
    all += '\n' + node.name + '\n' + node.host + '\n' + std::to_string(node.port);
  all += "\n\n" + config.self;
  char text[40];
  std::snprintf(text, sizeof text, "group-%016llx", static_cast<unsigned long long>(hash_of(all)));
  return text;
}

}  // namespace

class GroupNode::Parts final : public LinkEvents {
 public:
  Parts(const Config& config, LocalProcess& local, std::shared_ptr<Inbox> inbox, Settings terms,
        std::size_t first_terms)
      : kept_(file_of(config)),
        process_(config.cluster, config.self, local.incarnation, local.peers),
        inbox_(std::move(inbox)),
        timer_(io_),
        engine_(options_of(config, std::move(terms), first_terms), kept_.former()) {
    process_.security = local.security;
    process_.of_file = local.of_file;
    for (const NodeEntry& node : config.nodes) {
      if (node.name == config.self) continue;
      links_.emplace(node.name,
                     std::make_shared<GroupLink>(io_, process_, peer_address(node), *this));
    }
    publish();
  }
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  ~Parts() {
    inbox_->close();
    entries_->end();
    asio::post(io_, [this] {
      stopped_ = true;
      timer_.cancel();
      for (const auto& [name, link] : links_) link->stop();
    });
    if (thread_.joinable()) thread_.join();
  }

  // With the engine, by any thread. What follows goes out from the I/O thread.
  template <class Work>
  auto with(Work work) {
    const MutexLock lock(mutex_);
    return work(engine_);
  }
  bool complete(std::uint64_t view, std::uint64_t operation) {
    const MutexLock lock(mutex_);
    if (!engine_.views().complete(view, operation)) return false;
    // Others may have asked how far it is.
    if (state_.standing == members::ViewEngine::Standing::joining)
      asio::post(io_, [this] { pump(); });
    return true;
  }

  void start() {
    for (const auto& [name, link] : links_) link->start();
    asio::post(io_, [this] { tick(); });
    thread_ = start_background_thread([this] {
      name_thread("dpwa-group");
      net::run_io(io_);
    });
    inbox_->open([this](wire::ViewFrame frame) {
      asio::post(io_, [this, frame = std::move(frame)] {
        if (stopped_) return;
        receive(frame);
        pump_soon();
      });
    });
  }

  State state() const {
    const MutexLock lock(mutex_);
    State state = state_;
    state.frozen = engine_.views().frozen() || state.view.number != engine_.views().view().number;
    state.peers = engine_.peers();
    state.at = now();
    state.lacking = engine_.lacking(state.at);
    state.lost_after = engine_.silence().lost_after();
    state.late_after = engine_.silence().late_after();
    return state;
  }

  std::uint64_t wait_for_change(std::uint64_t seen, TimePoint until) {
    MutexLock lock(mutex_);
    while (changes_ == seen && changed_.wait_until(lock, until)) {
    }
    return changes_;
  }
  void wake() {
    const MutexLock lock(mutex_);
    note_change();
  }

  const std::shared_ptr<SharedEntries>& entries() const { return entries_; }

  void forget() {
    asio::post(io_, [this] { kept_.remove(); });
  }

 private:
  static TimePoint now() { return SteadyClock::now(); }

  void connected(const std::string& name) override {
    with([&](GroupEngine& engine) { engine.connected(name); });
    pump();
    for (const members::Entry& entry : entries_->own()) send(name, entry);
  }
  void not_reached(const std::string& name, bool nobody_listens,
                   const std::string& barred) override {
    with([&](GroupEngine& engine) {
      engine.not_reached(name, nobody_listens, barred);
      engine.tick(now());
    });
    pump();
  }

  void receive(const wire::ViewFrame& frame) {
    const MutexLock lock(mutex_);
    engine_.receive(frame.from, frame.message, now());
    const auto* const entry = std::get_if<members::Entry>(&frame.message);
    if (entry == nullptr || !engine_.counts(frame.from)) return;
    entries_->receive(frame.from, *entry);
    note_change();
  }

  void send(const std::string& to, const members::GroupMessage& message) {
    const auto link = links_.find(to);
    if (link == links_.end()) return;
    link->second->send(with([](GroupEngine& engine) { return engine.views().self(); }), message);
  }

  void tick() {
    if (stopped_) return;
    with([](GroupEngine& engine) { engine.tick(now()); });
    pump();
    {
      const MutexLock lock(mutex_);
      note_change();  // what others say of themselves, and their silence
    }
    timer_.expires_after(between_ticks);
    timer_.async_wait([this](const boost::system::error_code& error) {
      if (!error) tick();
    });
  }

  // Once for all messages that have come at one time.
  void pump_soon() {
    if (std::exchange(pumps_soon_, true)) return;
    asio::post(io_, [this] {
      pumps_soon_ = false;
      pump();
    });
  }

  void pump() {
    if (stopped_) return;
    GroupEngine::Wishes wishes;
    members::ProcessId self;
    {
      const MutexLock lock(mutex_);
      wishes = engine_.take();
      self = engine_.views().self();
    }
    if (wishes.keep) kept_.write(*wishes.keep);
    for (const auto& each : wishes.send) {
      const auto link = links_.find(each.to);
      if (link != links_.end()) link->second->send(self, each.message);
    }
    if (wishes.installed.empty()) return;
    for (const members::View& view : wishes.installed) tell(view);
    const MutexLock lock(mutex_);
    publish();
  }

  static void tell(const members::View& view) {
    std::string names;
    for (const members::Member& member : view.members) {
      names += (names.empty() ? "" : ", ") + member.id.name + (member.joining ? " (joins)" : "");
      if (names.size() > longest_list) {
        names += ", …";
        break;
      }
    }
    log(LogLevel::debug, "group",
        "view " + std::to_string(view.number) + ": " + (names.empty() ? "nobody" : names));
  }

  void publish() DPWA_REQUIRES(mutex_) {
    state_.view = engine_.views().view();
    state_.self = engine_.views().self();
    state_.standing = engine_.views().standing();
    note_change();
  }
  void note_change() DPWA_REQUIRES(mutex_) {
    ++changes_;
    changed_.notify_all();
  }

  KeptFile kept_;
  asio::io_context io_{1};
  GroupProcess process_;
  const std::shared_ptr<Inbox> inbox_;
  const std::shared_ptr<SharedEntries> entries_ =
      std::make_shared<SharedEntries>([this](const members::Entry& entry) {
        asio::post(io_, [this, entry] {
          if (stopped_) return;
          for (const auto& [name, link] : links_) send(name, entry);
        });
      });
  asio::steady_timer timer_;
  std::map<std::string, std::shared_ptr<GroupLink>> links_;
  bool stopped_ = false;
  bool pumps_soon_ = false;

  mutable Mutex mutex_;
  Condition changed_;
  GroupEngine engine_ DPWA_GUARDED_BY(mutex_);
  State state_ DPWA_GUARDED_BY(mutex_);  // of the views that are on the disk
  std::uint64_t changes_ DPWA_GUARDED_BY(mutex_) = 1;
  std::thread thread_;
};

GroupNode::GroupNode(const Config& config, LocalProcess& local, std::shared_ptr<Inbox> inbox,
                     Settings terms, std::size_t first_terms)
    : parts_(
          std::make_unique<Parts>(config, local, std::move(inbox), std::move(terms), first_terms)) {
  parts_->start();
}

GroupNode::~GroupNode() = default;

GroupNode::State GroupNode::state() const {
  return parts_->state();
}
std::uint64_t GroupNode::wait_for_change(std::uint64_t seen, TimePoint until) {
  return parts_->wait_for_change(seen, until);
}
void GroupNode::wake() {
  parts_->wake();
}
bool GroupNode::complete(std::uint64_t view, std::uint64_t operation) {
  return parts_->complete(view, operation);
}
bool GroupNode::begin_at(std::uint64_t view, std::uint64_t through) {
  return parts_->with([&](GroupEngine& engine) { return engine.views().begin_at(view, through); });
}
void GroupNode::note_state(std::uint64_t through, std::uint64_t digest) {
  parts_->with([&](GroupEngine& engine) { engine.views().note_state(through, digest); });
}
void GroupNode::renew() {
  parts_->with([](GroupEngine& engine) { engine.views().renew(); });
}
void GroupNode::leave() {
  parts_->with([](GroupEngine& engine) { engine.views().leave(); });
}
void GroupNode::give_up(const std::string& name) {
  parts_->with([&](GroupEngine& engine) { engine.give_up(name); });
}
void GroupNode::set_waiting(bool waits) {
  parts_->with([&](GroupEngine& engine) { engine.set_waiting(waits, SteadyClock::now()); });
}
void GroupNode::set_seeking(bool seeks) {
  parts_->with([&](GroupEngine& engine) { engine.set_seeking(seeks, SteadyClock::now()); });
}
std::shared_ptr<SharedEntries> GroupNode::entries() const {
  return parts_->entries();
}
void GroupNode::forget() {
  parts_->forget();
}

}  // namespace dpwa::group
