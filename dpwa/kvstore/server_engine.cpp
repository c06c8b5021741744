#include "dpwa/kvstore/server_engine.h"

#include <algorithm>
#include <type_traits>
#include <utility>
#include <variant>

#include "dpwa/base/incarnation.h"
#include "dpwa/base/invariant.h"
#include "dpwa/kvstore/lost_words.h"

namespace dpwa::kvstore {
namespace {

WatchOptions with_replicas(WatchOptions options, bool replicas) {
  options.replicas = replicas;
  return options;
}

template <typename Type, typename... Types>
constexpr bool is_one_of = (std::is_same_v<Type, Types> || ...);

// Snapshots are counted one by one: no beat can use up their numbers.
constexpr std::uint32_t most_snapshots_ahead = 1 << 20;

constexpr int patience = 10;  // silences

// To the workers of the run whose last epoch this is.
Answer run_over(const Epoch& last, const std::vector<std::string>& started_again) {
  Answer answer;
  answer.kind = AnswerKind::run_over;
  answer.version = last.run;
  answer.step = last.number;
  answer.problem = words_for_lost(started_again);
  return answer;
}

}  // namespace

ServerEngine::ServerEngine(const ServerEngineOptions& options, const MemberId& self,
                           const std::vector<std::string>& servers, TimePoint now)
    : options_(options),
      started_(now),
      epochs_(self, servers, options.retry),
      watch_(with_replicas(options.watch, options.shard.replicas), self, now),
      shard_(options.shard, self.name) {
  if (options.snapshots) return;
  stock_.listed = true;
  stock_.loaded = SnapshotId{};
}

Beat ServerEngine::beat() const {
  Beat beat;
  beat.epoch = epoch().number;
  beat.clock = std::max(shard_.clock(), loaded_clock_);
  beat.snapshot = shard_.snapshot();
  beat.filled = shard_.filled();
  beat.stored = stored_;
  beat.over = over_;
  beat.updates = shard_.counts().updates;
  if (beat.epoch == 0) beat.stock = stock_;
  beat.settings = options_.settings;
  return beat;
}

void ServerEngine::snapshot_over(std::uint32_t number, bool stored) {
  over_ = std::max(over_, number);
  if (stored) stored_ = std::max(stored_, number);
}

void ServerEngine::set_stock(std::vector<SnapshotId> held, bool had_complete) {
  std::ranges::sort(held);
  if (held.size() > max_snapshots_held) held.erase(held.begin(), held.end() - max_snapshots_held);
  stock_.listed = true;
  stock_.had_complete = had_complete;
  stock_.held = std::move(held);
  beaten_ = TimePoint::min();  // sends a beat at once: the others wait for it
}

void ServerEngine::load(const SnapshotId& from, std::vector<ShardEngine::Captured> slices) {
  DPWA_INVARIANT(!stock_.loaded, "a server loads one snapshot", from.run, from.number);
  loaded_clock_ = 0;
  for (const ShardEngine::Captured& each : slices) {
    loaded_clock_ = std::max(loaded_clock_, each.state.round);
    for (const auto& [name, clock] : each.state.clocks) {
      watch_.know(clock.worker);
      loaded_clock_ = std::max(loaded_clock_, clock.next);
    }
  }
  stock_.loaded = from;
  loaded_ = std::move(slices);
  beaten_ = TimePoint::min();
}

// Loaded slices are used in this epoch or never.
void ServerEngine::take_up_loaded() {
  auto slices = std::exchange(loaded_, {});
  const bool first = epoch().number == epoch().run;
  if (first && stock_.loaded != epoch().from) {
    deposed_ = true;
    return;
  }
  loaded_clock_ = 0;
  shard_.announce_snapshot(epoch().from.number);
  if (!first) return;
  const auto servers = static_cast<std::uint32_t>(epoch().servers.size());
  for (ShardEngine::Captured& each : slices) {
    each.state.snapshot = epoch().from.number;
    shard_.restore(each.slice, each.spec, servers, std::move(each.state));
  }
}

void ServerEngine::take_up_epoch(TimePoint now) {
  if (!epoch().has(self())) {
    // A server that has just started first learns of the others, and is taken in later. One that
    // was left out again before it heard of that would not be: its process is known.
    const auto place = epoch().server(self().name);
    // It may have completed what another server had proposed, an epoch with its former process.
    deposed_ =
        member_ || (place && epoch().servers[*place].id == self()) || has_former_values(epoch());
    return;
  }
  if (!member_) take_up_loaded();
  if (deposed_) return;
  member_ = true;
  watch_.installed(epoch(), now);
  shard_.install(epoch(), now);
  tell_passed();
}

// Two servers that have just started both find out, and both end.
bool ServerEngine::agrees(const MemberId& from, const Beat& beat) {
  auto problem = first_difference({self().name, options_.settings}, {from.name, beat.settings});
  if (!problem) return true;
  *problem += "; accepted: the same on all nodes and servers";
  if (std::exchange(refused_[from.name], from.incarnation) != from.incarnation) {
    complaints_.push_back("'" + from.name + "' is not admitted: " + *problem);
  }
  if (!epoch().server(from.name)) {
    Answer answer;
    answer.epoch = epoch().number;
    answer.kind = AnswerKind::other_settings;
    answer.problem = *std::move(problem);
    outgoing_.push_back({from.name, 0, std::move(answer)});
  } else if (!member_) {
    refusal_ = std::move(problem);
  }
  return false;
}

std::optional<Answer> ServerEngine::refusal(const MemberId& worker, TimePoint now) const {
  Answer answer;
  answer.kind = AnswerKind::name_taken;
  const auto lost = lost_servers(now);
  if (!lost.empty() && !epoch().has(worker)) {
    answer.problem = "the run cannot continue: " + words_for_lost(lost);
  } else if (watch_.is_taken(worker, now)) {
    answer.problem = "another process takes part as worker '" + worker.name + "'";
  } else {
    return later_number(worker, now);
  }
  return answer;
}

// To a process that comes before another one of its name, which no longer answers: it takes a later
// number. None: it does not.
std::optional<Answer> ServerEngine::later_number(const MemberId& process, TimePoint now) const {
  const bool is_server = epoch().server(process.name).has_value();
  const auto known = watch_.known_above(process, is_server, now);
  if (!known || epoch().has(process)) return std::nullopt;
  Answer answer;
  answer.kind = AnswerKind::name_taken;
  answer.step = *known;
  answer.version = epoch().number;
  answer.problem = std::string("a former process of ") + (is_server ? "server" : "worker") + " '" +
                   process.name +
                   "' has a later number than this one, as if it had started later; the clock of "
                   "this machine was set back, or is behind";
  return answer;
}

// A server that has taken part learns from the epoch itself that it does no more. `known`: the
// highest number in use.
void ServerEngine::note_later_process(std::uint64_t incarnation, std::uint64_t known) {
  if (member_ || incarnation <= self().incarnation) return;
  known = std::max(known, incarnation);
  if (!incarnation_after(known, self().incarnation)) return;
  outdated_by_ = known;
  deposed_ = true;
}

// Each process that it can reach has had the time to say in which epoch it is.
bool ServerEngine::has_listened(TimePoint now) const {
  return now - started_ >= options_.watch.silent_after;
}

// The vote of a server that has been started again counts in place of that of its former process.
// Before it votes it listens, because workers may be in later epochs that died with that process.
bool ServerEngine::may_vote(TimePoint now) const {
  return epoch().number == 0 || epoch().has(self()) || has_listened(now);
}

// A worker that has missed the last epochs may be the first that tells of the run: others, in later
// ones, may have the values that were this server's alone. So may a server that cannot be heard,
// which the former process has filled since: only after a long silence it counts as gone.
std::vector<std::string> ServerEngine::lost_servers(TimePoint now) const {
  const bool may_be_cut_off = now - started_ < patience * options_.watch.silent_after;
  const bool others_may_hold = options_.shard.replicas && !watch_.has_heard_servers(epoch());
  if (!has_listened(now) || (others_may_hold && may_be_cut_off)) return {};
  return watch_.started_again(epoch());
}

std::vector<std::string> ServerEngine::started_again(TimePoint now) const {
  return member_ ? std::vector<std::string>() : lost_servers(now);
}

// A server that has been started again may learn of the run from anyone. A worker that the others
// have taken in may be the only one who knows of that.
bool ServerEngine::believes(const MemberId& from, const Epoch& epoch) const {
  if (!member_ || this->epoch().server(from.name)) return true;
  return this->epoch().has(from) || epoch.has(from);
}

// Whether the former process of this server has values in this epoch that nobody else has.
bool ServerEngine::has_former_values(const Epoch& epoch) const {
  if (member_ || options_.shard.replicas || !epochs_.fits(epoch)) return false;
  const ServerEntry& entry = epoch.servers[*epoch.server(self().name)];
  return entry.state == ServerState::up && entry.id.incarnation != self().incarnation;
}

bool ServerEngine::has_lost_values_of(const Epoch& epoch) const {
  return epoch.number > this->epoch().number && has_former_values(epoch);
}

// The old epoch is not installed: this server is before its first one.
void ServerEngine::end_run(const MemberId& from, const Epoch& last, TimePoint now) {
  if (last.number > ended_.number) ended_ = last;
  const bool has_snapshot = !stock_.held.empty() || (stock_.loaded && stock_.loaded->number > 0);
  const bool goes_on = has_snapshot && !watch_.others_are_in(ended_, now);
  watch_.follow(goes_on ? ended_ : Epoch{}, now);
  if (!stock_.listed || goes_on || last.server(from.name)) return;
  outgoing_.push_back({from.name, 0, run_over(ended_, {self().name})});
}

// Workers that wait for values that nobody has would wait for ever.
void ServerEngine::tell_lost(TimePoint now) {
  const std::vector<std::string> lost = started_again(now);
  if (lost.empty()) return;
  const Answer over = run_over(epoch(), lost);
  for (const WorkerEntry& worker : epoch().workers) outgoing_.push_back({worker.id.name, 0, over});
  for (const MemberId& worker : epoch().at_end) outgoing_.push_back({worker.name, 0, over});
  // Those that wait to be admitted, perhaps since before this was known.
  for (const MemberId& member : watch_.hears(now)) {
    if (epoch().server(member.name) || epoch().has(member)) continue;
    if (auto answer = refusal(member, now))
      outgoing_.push_back({member.name, 0, *std::move(answer)});
  }
}

void ServerEngine::hear_of_snapshot(std::uint32_t number) {
  const std::uint32_t known = shard_.snapshot();
  if (number > known && number - known <= most_snapshots_ahead) shard_.announce_snapshot(number);
}

// Its requests tell a worker of it. One that makes none would not get past the snapshot.
void ServerEngine::tell_snapshot(const MemberId& worker, const Beat& beat) {
  if (beat.snapshot >= shard_.snapshot()) return;
  Answer answer;
  answer.epoch = epoch().number;
  answer.kind = AnswerKind::snapshot_begun;
  answer.snapshot = shard_.snapshot();
  outgoing_.push_back({worker.name, 0, std::move(answer)});
}

void ServerEngine::tell_passed() {
  for (const auto& [worker, count] : barriers_.take_passed(epoch())) {
    outgoing_.push_back({worker, 0, Barrier{epoch().number, count, false}});
  }
}

void ServerEngine::receive(const MemberId& from, std::uint64_t tag, Message message,
                           TimePoint now) {
  if (deposed_) return;
  std::visit(
      [&](auto& content) {
        using Content = std::decay_t<decltype(content)>;
        if constexpr (std::is_same_v<Content, Beat>) {
          if (!agrees(from, content)) return;
          if (auto answer = later_number(from, now)) {
            outgoing_.push_back({from.name, 0, *std::move(answer)});
            return;
          }
          // The others may wait to learn that this server hears it too.
          if (watch_.heard(from, content, now)) beaten_ = TimePoint::min();
          hear_of_snapshot(content.snapshot);
          if (epoch().worker(from.name) != nullptr) {
            shard_.passed_snapshot(from, content.snapshot);
            shard_.passed_epoch(from, content.past_epoch);
            tell_snapshot(from, content);
          }
          epochs_.compare(from.name, content.epoch);
        } else if constexpr (std::is_same_v<Content, EpochNews>) {
          if (!believes(from, content.epoch)) return;
          if (const auto place = content.epoch.server(self().name))
            note_later_process(content.epoch.servers[*place].id.incarnation,
                               std::max(content.epoch.number, content.epoch.run));
          if (deposed_) return;
          if (has_lost_values_of(content.epoch)) return end_run(from, content.epoch, now);
          if (epochs_.receive(from, content, now)) take_up_epoch(now);
        } else if constexpr (is_one_of<Content, Ballot, Promise, Proposal, Vote, AskEpoch>) {
          if (is_one_of<Content, Ballot, Proposal> && !may_vote(now)) return;
          watch_.answered(from, now);
          if constexpr (std::is_same_v<Content, Promise>) reconsider(now);
          if (epochs_.receive(from, content, now)) take_up_epoch(now);
        } else if constexpr (std::is_same_v<Content, Barrier>) {
          epochs_.compare(from.name, content.epoch);
          barriers_.reached(from, content.count, content.waits);
          if (member_) tell_passed();
        } else if constexpr (is_one_of<Content, Init, Push, Pull, StateMessage>) {
          epochs_.compare(from.name, content.epoch);
          if constexpr (std::is_same_v<Content, Push>) {
            if (epoch().has(from)) hear_of_snapshot(content.snapshot);
            // What is captured for a later one than the last would be kept for ever.
            content.snapshot = std::min(content.snapshot, shard_.snapshot());
          }
          shard_.receive(from, tag, std::move(content), now);
        } else if constexpr (std::is_same_v<Content, Answer>) {
          if (content.kind == AnswerKind::name_taken && epoch().server(from.name))
            note_later_process(content.step, content.version);
        } else {
          epochs_.compare(from.name, content.epoch);
          shard_.receive(from, std::move(content), now);
        }
      },
      message);
}

// What was to follow when the ballot began need not be right any more: a member that was silent
// answers, or the server that was to stand in for it has died.
void ServerEngine::reconsider(TimePoint now) {
  if (epochs_.proposing()) epochs_.amend(watch_.successor(epoch(), beat(), now));
}

void ServerEngine::complain_of_deaf(TimePoint now) {
  auto deaf = watch_.deaf(now);
  for (const auto& pair : deaf) {
    if (std::ranges::count(deaf_, pair) > 0) continue;
    complaints_.push_back("server '" + pair.first + "' does not hear '" + pair.second +
                          "', which other servers hear");
  }
  deaf_ = std::move(deaf);
}

void ServerEngine::tick(TimePoint now) {
  if (deposed_) return;
  watch_.look(now);
  reconsider(now);
  epochs_.tick(now);
  shard_.tick(now);
  if (beaten_ != TimePoint::min() && now - beaten_ < options_.beat) return;
  beaten_ = now;
  tell_lost(now);
  watch_.compare_hearing(epoch(), now);
  complain_of_deaf(now);
  Beat sent = beat();
  sent.hears = watch_.hears(now);
  for (const ServerEntry& server : epoch().servers) {
    if (server.id.name != self().name) outgoing_.push_back({server.id.name, 0, sent});
  }
  if (epochs_.proposing()) return;
  const std::uint64_t before = epoch().number;
  if (auto next = watch_.successor(epoch(), beat(), now)) epochs_.propose(*std::move(next), now);
  if (epoch().number != before) take_up_epoch(now);  // this server alone was the majority
}

std::vector<Outgoing> ServerEngine::take() {
  for (auto& [to, message] : epochs_.take()) {
    outgoing_.push_back(
        {to, 0, std::visit([](auto& content) { return Message(std::move(content)); }, message)});
  }
  for (Outgoing& each : shard_.take()) outgoing_.push_back(std::move(each));
  return std::exchange(outgoing_, {});
}

}  // namespace dpwa::kvstore
