#include "dpwa/collective/group_former.h"

#include <chrono>
#include <exception>
#include <new>
#include <nlohmann/json.hpp>
#include <stop_token>
#include <utility>
#include <vector>

#include "dpwa/base/aside.h"
#include "dpwa/base/backoff.h"
#include "dpwa/base/random.h"
#include "dpwa/base/thread_failure.h"
#include "dpwa/base/thread_name.h"
#include "dpwa/collective/error.h"
#include "dpwa/collective/terms.h"
#include "dpwa/config/text.h"
#include "dpwa/log/events.h"
#include "dpwa/net/host_names.h"
#include "dpwa/net/local_process.h"
#include "dpwa/net/status_query.h"
#include "dpwa/security/security.h"

namespace dpwa::collective {
namespace {

using namespace std::chrono_literals;
using SteadyClock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr auto between_looks = 100ms;
constexpr auto between_looks_during_an_attempt = 3ms;
constexpr auto between_words_on_a_stranger = 60s;
constexpr auto between_questions_of_backends = 2s;
constexpr milliseconds limit_of_an_attempt = 10s;
constexpr milliseconds time_of_an_answer = 500ms;
// Between two views that are asked for because a group did not form.
constexpr Backoff between_views{100ms, 2000ms, 0.25};

std::vector<std::string> names_of(const GroupMembers& group) {
  std::vector<std::string> names;
  for (const auto& member : group.members) names.push_back(member.id.name);
  return names;
}

std::string words_for(const GroupMembers& group) {
  return "the group of " + config::joined(names_of(group)) + " in view " +
         std::to_string(group.view);
}

std::uint64_t hash_of_group(const group::GroupNode::State& state, const GroupMembers& group) {
  return derive_seed(state.view.digest(), {group.number()});
}

}  // namespace

// On a thread that is never waited for.
struct GroupFormer::Attempt {
  GroupMembers members;
  bool newcomer = false;
  std::stop_source stop;
  Mutex mutex;
  std::optional<Attempted> result DPWA_GUARDED_BY(mutex);
};

Attempted attempt(const Connector& connector, const GroupOptions& options,
                  const std::shared_ptr<group::SharedEntries>& entries) {
  Attempted result;
  try {
    result.group = connector.form(options, entries);
  } catch (const CollectiveError& error) {
    result.problem = error.reason();
    result.hopeless = error.failure() == Failure::mismatch;  // of all members, as they see it
  } catch (const std::exception& error) {
    result.problem = error.what();
  }
  return result;
}

std::string not_together(const std::string& problem) {
  return "the nodes do not come together" + (problem.empty() ? "" : ": " + problem);
}

GroupFormer::GroupFormer(const Config& config, LocalProcess& local, group::GroupNode& node,
                         NoticeBoard& board, Connector connector)
    : config_(config),
      local_(local),
      node_(node),
      board_(board),
      connector_(std::move(connector)),
      begun_(SteadyClock::now()) {
  board_.change([this](GroupNotes& notes) { notes.engine = connector_.engine; });
  thread_ = start_background_thread(
      [this] { run_or_end("the thread that forms groups", [this] { work(); }); });
}

GroupFormer::~GroupFormer() {
  {
    const MutexLock lock(mutex_);
    ends_ = true;
  }
  node_.wake();
  thread_.join();
  drop_attempt();
}

void GroupFormer::seek() {
  {
    std::optional<Formed> dropped;  // ends outside of the lock
    const MutexLock lock(mutex_);
    board_.change([](GroupNotes& notes) { notes.seeks = true; });
    seeks_ = true;
    current_group_.reset();
    dropped.swap(formed_);
    minority_.clear();
    stranger_.clear();
    problem_.clear();
  }
  node_.wake();
}

std::uint64_t GroupFormer::formed() const {
  const MutexLock lock(mutex_);
  return formed_ ? formed_->membership.number() : 0;
}

std::string GroupFormer::minority() const {
  const MutexLock lock(mutex_);
  return minority_;
}

std::string GroupFormer::stranger() const {
  const MutexLock lock(mutex_);
  return stranger_;
}

std::string GroupFormer::refusal() const {
  const MutexLock lock(mutex_);
  return refusal_;
}

std::string GroupFormer::problem() const {
  const MutexLock lock(mutex_);
  if (missing_.empty()) return problem_;
  return problem_ + (problem_.empty() ? "" : "; ") + "missing: " + missing_;
}

std::optional<GroupFormer::Formed> GroupFormer::take(Duration limit,
                                                     const std::function<bool()>& given_up) {
  const auto until = SteadyClock::now() + limit;
  MutexLock lock(mutex_);
  while (!formed_ && SteadyClock::now() < until) {
    lock.unlock();
    if (given_up()) return std::nullopt;
    lock.lock();
    const auto next_look = SteadyClock::now() + 20ms;
    while (!formed_ && changed_.wait_until(lock, next_look)) {
    }
  }
  if (!formed_) return std::nullopt;
  seeks_ = false;
  current_ = formed_->membership;
  current_group_ = formed_->group;
  board_.change([&membership = formed_->membership](GroupNotes& notes) {
    notes.formed = membership;
    notes.seeks = false;
    notes.minority.clear();
  });
  return std::exchange(formed_, std::nullopt);
}

void GroupFormer::work() {
  name_thread("dpwa-groups");
  std::uint64_t seen = 0;
  while (true) {
    {
      const MutexLock lock(mutex_);
      if (ends_) return;
    }
    try {
      look();
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::exception& error) {  // such as no file descriptors for now
      tell_of_failure(error.what());
    }
    const auto pause = attempt_ ? between_looks_during_an_attempt : milliseconds(between_looks);
    seen = node_.wait_for_change(seen, SteadyClock::now() + pause);
  }
}

void GroupFormer::look() {
  harvest();
  const State state = node_.state();
  bool seeks = false;
  {
    const MutexLock lock(mutex_);
    seeks = seeks_;
  }
  node_.set_seeking(seeks);
  note_words(state, seeks);
  drop_stale(state);
  const auto members = wanted(state, seeks);
  if (attempt_ && (!members || attempt_->members != *members)) drop_attempt();
  if (!members) return;
  if (const std::string gone = gone_member(*members, state.peers); !gone.empty()) {
    if (attempt_) ++failures_;
    drop_attempt();
    const MutexLock lock(mutex_);
    problem_ = gone;
  } else {
    pursue(state, *members);
  }
}

void GroupFormer::note_words(const State& state, bool seeks) {
  if (board_.read().view != state.view.number)
    board_.change([&](GroupNotes& notes) { notes.view = state.view.number; });
  if (seeks) {
    std::string minority = minority_in(state);
    std::string missing = missing_in(state);
    const bool first = board_.read().formed.view == 0;
    if (board_.read().minority != minority)
      board_.change([&](GroupNotes& notes) { notes.minority = minority; });
    if (first) ask_backends(state);
    std::string stranger =
        first ? stranger_in(state, backends_, state.at - begun_ >= state.lost_after) : "";
    const MutexLock lock(mutex_);
    minority_ = std::move(minority);
    missing_ = std::move(missing);
    stranger_ = std::move(stranger);
  } else {
    tell_of_strangers(state);
  }
}

// Nodes of another back end accept no message of this one, and say of themselves in their status
// alone.
void GroupFormer::ask_backends(const State& state) {
  if (state.at - looked_ < between_questions_of_backends) return;
  looked_ = state.at;
  std::vector<PeerAddress> asked;
  for (const NodeEntry& node : config_.nodes) {
    const auto peer = state.peers.find(node.name);
    if (peer != state.peers.end() && !peer->second.id && !peer->second.refuses())
      asked.push_back(peer_address(node));
  }
  const auto answers =
      query_status(config_.cluster, asked, time_of_an_answer, local_.security.get());
  for (const StatusAnswer& answer : answers) {
    const auto document = nlohmann::json::parse(answer.json, nullptr, false);
    if (!answer.error.empty() || !document.is_object()) continue;
    const auto backend = document.find("backend");
    if (backend != document.end() && backend->is_string())
      backends_[answer.name] = backend->get<std::string>();
  }
}

void GroupFormer::tell_of_failure(const std::string& what) {
  log(limiter_, what, LogLevel::warn, "collective", "cannot look for a group: " + what);
  const MutexLock lock(mutex_);
  problem_ = what;
}

void GroupFormer::tell_of_strangers(const State& state) {
  for (const auto& [name, peer] : state.peers) {
    const bool comes = peer.id && state.view.member(*peer.id) == nullptr;
    if (!comes || peer.differs.empty()) continue;
    const auto [told, first] = told_.try_emplace(name, state.at);
    if (!first && state.at - told->second < between_words_on_a_stranger) continue;
    told->second = state.at;
    log_event(EventKind::left_out, LogLevel::warn, "collective",
              "'" + name + "' is not admitted because it differs: " + peer.differs);
  }
}

// A group that the views have left behind: the training thread gets an error from it.
void GroupFormer::drop_stale(const State& state) {
  std::optional<Formed> dropped;  // ends outside of the lock
  std::shared_ptr<StepGroup> current;
  std::optional<int> lost;
  {
    const MutexLock lock(mutex_);
    const bool stale =
        formed_ && (is_left_behind(formed_->membership, state.view) || formed_->group->broken());
    if (stale) dropped.swap(formed_);
    if (seeks_ || state.view.number <= current_.view) return;
    lost = current_.rank_outside(state.view);
    if (!lost) return;
    current = current_group_.lock();
  }
  if (config_.collective.on_lost_rank != OnLostRank::stop && current && !current->aborted())
    current->abandon(*lost);
}

std::optional<GroupMembers> GroupFormer::wanted(const State& state, bool seeks) const {
  std::vector<std::string> names;
  for (const NodeEntry& node : config_.nodes) names.push_back(node.name);
  const bool stops = config_.collective.on_lost_rank == OnLostRank::stop;
  const MutexLock lock(mutex_);
  if (formed_) return std::nullopt;
  return wanted_group(state.view, state.self, names,
                      {.seeks = seeks, .current = current_, .needs_all = stops});
}

void GroupFormer::pursue(const State& state, const GroupMembers& wanted) {
  if (attempt_) return;
  if (wanted.number() <= used_) return ask_for_view(state);
  // One that joins does not know whether the others form this group, or first one without it.
  const bool waits = !state.view.votes(state.self) && !connector_.has_members;
  if (waits && !node_.entries()->others_have_come(hash_of_group(state, wanted))) return;
  begin(state, wanted);
}

// The group of this view has broken, or did not form: a new one needs a new view.
void GroupFormer::ask_for_view(const State& state) {
  Random random(used_);
  if (state.at - asked_ < between_views.delay(failures_ + 1, random)) return;
  asked_ = state.at;
  node_.renew();
}

void GroupFormer::begin(const State& state, const GroupMembers& members) {
  const std::size_t self = config_.self_index();
  GroupOptions options;
  options.rank = *members.rank_of(self);
  options.size = static_cast<int>(members.members.size());
  options.epoch = members.view;
  options.members = hash_of_group(state, members);
  options.names = names_of(members);
  options.own_address = net::addresses_now(peer_address(config_.nodes[self])).front();
  options.form_timeout = limit_of_an_attempt;
  options.security = local_.security;
  options.same_host = config_.transport.same_host;
  // The watch decides whether a late rank is lost (Lateness in lateness.h).
  options.timeout = std::chrono::hours(24);
  log(LogLevel::debug, "collective", "comes to " + words_for(members));
  auto attempt = std::make_shared<Attempt>();
  attempt->members = members;
  const members::Member* const own = state.view.member(state.self);
  attempt->newcomer = own->joining || board_.read().formed.view == 0;
  // NCCL connects with the first operation: a group that breaks ends its wait for that.
  options.stop = attempt->stop.get_token();
  options.on_broken = [source = attempt->stop]() mutable { source.request_stop(); };
  finish_aside([attempt, connector = connector_, options, entries = node_.entries()] {
    Attempted result = collective::attempt(connector, options, entries);
    const MutexLock lock(attempt->mutex);
    attempt->result = std::move(result);
  });
  attempt_ = std::move(attempt);
  used_ = members.number();
}

void GroupFormer::drop_attempt() {
  if (!attempt_) return;
  attempt_->stop.request_stop();
  log(LogLevel::debug, "collective", "abandons " + words_for(attempt_->members));
  attempt_.reset();
}

// Takes the result of the attempt.
void GroupFormer::harvest() {
  if (!attempt_) return;
  Attempted result;
  {
    const MutexLock lock(attempt_->mutex);
    if (!attempt_->result) return;
    result = std::move(*attempt_->result);
  }
  const auto attempt = std::exchange(attempt_, nullptr);
  if (!result.group) {
    ++failures_;
    log(LogLevel::debug, "collective",
        words_for(attempt->members) + " did not form: " + result.problem);
    const MutexLock lock(mutex_);
    problem_ = result.problem;
    if (result.hopeless) refusal_ = result.problem;
    return;
  }
  failures_ = 0;
  const MutexLock lock(mutex_);
  formed_ = Formed{attempt->members, std::move(result.group), attempt->newcomer};
  if (!connector_.setting.empty())
    log(LogLevel::info, "collective", "engine " + connector_.engine + ": " + connector_.setting);
  changed_.notify_all();
}

}  // namespace dpwa::collective
