#include "dpwa/members/group_engine.h"

#include <algorithm>
#include <chrono>
#include <ranges>
#include <variant>

#include "dpwa/base/plain_text.h"
#include "dpwa/base/random.h"

namespace dpwa::members {
namespace {

// For a later process of a voter to give the vote that its former one has kept.
constexpr Duration to_speak_for_the_former = std::chrono::seconds(2);
constexpr int not_heard = 10;  // beats: at this moment
constexpr int finds_out = 20;  // beats: until all know that a run is over
constexpr auto no_longer_running = "is no longer running";
constexpr int at_rest = 3;  // times as long may a member be silent that nobody waits for

}  // namespace

std::string Peer::why_gone(const ProcessId& process) const {
  if (id && id->replaces(process)) return "was started again";
  return lost.empty() && refuses() ? no_longer_running : lost;
}

GroupEngine::GroupEngine(GroupEngineOptions options, std::optional<Kept> former)
    : options_(std::move(options)),
      views_(std::in_place, options_.view, std::move(former)),
      silence_({options_.beat, options_.lost_after}) {
  for (const std::string& name : options_.view.names) {
    if (name != options_.view.self.name) peers_.try_emplace(name);
  }
}

void GroupEngine::connected(const std::string& name) {
  greeted_.insert(name);
  const auto peer = peers_.find(name);
  if (peer == peers_.end()) return;
  peer->second.bars = 0;
  peer->second.barred.clear();
}

void GroupEngine::not_reached(const std::string& name, bool refused, const std::string& barred) {
  const auto peer = peers_.find(name);
  if (peer == peers_.end()) return;
  peer->second.refusals = refused ? peer->second.refusals + 1 : 0;
  peer->second.bars = barred.empty() ? 0 : peer->second.bars + 1;
  peer->second.barred = barred;
}

void GroupEngine::set_waiting(bool waits, TimePoint now) {
  own_.waits = waits;
  note_waits(now);
}

void GroupEngine::set_seeking(bool seeks, TimePoint now) {
  seeks_ = seeks;
  note_waits(now);
}

void GroupEngine::note_waits(TimePoint now) {
  if (!own_.waits && !seeks_) {
    waits_since_.reset();
  } else if (!waits_since_) {
    waits_since_ = now;
  }
}

void GroupEngine::give_up(const std::string& name) {
  const Member* const member = views_->view().member(name);
  if (member == nullptr) return;
  given_up_.insert(member->id);
  views_->suspect(member->id);
}

// Of two processes of one name that speak, the later one counts.
void GroupEngine::note(const ProcessId& from, TimePoint now) {
  Peer& peer = peers_.at(from.name);
  const bool silent = now - peer.heard >= not_heard * options_.beat;
  if (!peer.id || from.replaces(*peer.id) || (silent && from != *peer.id)) {
    peer = {};
    peer.id = from;
    peer.first = now;
  }
  if (peer.id != from) return;
  peer.heard = now;
  peer.refusals = 0;
}

void GroupEngine::note_beat(Peer& peer, TimePoint now) {
  if (peer.beat != TimePoint{}) silence_.heard_after(now - peer.beat);
  peer.beat = now;
}

bool GroupEngine::counts(const ProcessId& id) const {
  const auto peer = peers_.find(id.name);
  return peer != peers_.end() && peer->second.id == id && !given_up_.contains(id);
}

// At the start of a run all settings but the first are compared by the members, who tell all of
// them. Nobody comes with others into a run that is under way.
bool GroupEngine::may_apply(const Peer& peer) const {
  if (peer.differs.empty()) return true;
  const auto first = options_.terms | std::views::take(options_.first_terms);
  return views_->view().open() && std::ranges::none_of(first, [&](const auto& term) {
           return peer.differs.starts_with(term.first + ": ");
         });
}

// Of a run that is over, others may have kept a view, and tell it until they find out as well. If
// they still do later, and no other run has begun, the run has gone on.
bool GroupEngine::is_possible(const View& view, TimePoint now) const {
  const bool waits = !views_->view().open() || now - over_at_ < finds_out * options_.beat;
  if (!view.open() && over_.contains(view.run) && waits) return false;
  return std::ranges::all_of(view.members, [this](const Member& member) {
    return member.id.name == views_->self().name || peers_.contains(member.id.name);
  });
}

void GroupEngine::receive(const ProcessId& from, const GroupMessage& message, TimePoint now) {
  if (!peers_.contains(from.name) || given_up_.contains(from)) return;
  note(from, now);
  Peer& peer = peers_.at(from.name);
  if (const auto* terms = std::get_if<Terms>(&message)) {
    if (peer.id == from)
      peer.differs =
          first_difference({options_.view.self.name, options_.terms}, {from.name, terms->settings})
              .value_or("");
    return;
  }
  if (std::holds_alternative<Leave>(message) && peer.id == from) peer.leaves = true;
  if (const auto* said = std::get_if<Beat>(&message)) {
    if (peer.id == from) {
      peer.said = *said;
      peer.has_said = true;
      note_beat(peer, now);
    }
    return views_->heard(from, said->base, now);
  }
  if (std::holds_alternative<Entry>(message)) return;  // for GroupEntries
  if (std::holds_alternative<Apply>(message) && !may_apply(peer)) return;
  const auto* const installed = std::get_if<Installed>(&message);
  const auto* const accept = std::get_if<Accept>(&message);
  if (installed != nullptr && !is_possible(installed->view, now)) return;
  if (accept != nullptr && !is_possible(accept->value, now)) return;
  std::visit(
      [&](const auto& content) {
        using Content = std::decay_t<decltype(content)>;
        if constexpr (std::is_constructible_v<ViewMessage, Content>)
          views_->receive(from, ViewMessage(content), now);
      },
      message);
}

// In words that follow its name; empty: it is not.
std::string GroupEngine::why_lost(const Peer& peer, Duration lost_after, TimePoint now) const {
  if (peer.refuses()) return no_longer_running;
  const Duration silent = now - std::max(peer.heard, waits_since_.value_or(TimePoint{}));
  const Duration longest = lost_after * (waits_since_ ? 1 : at_rest);
  const bool judges = waits_since_ || options_.judges_at_rest;
  return judges && silent >= longest ? "has not answered for " + in_seconds(silent) : "";
}

void GroupEngine::judge(TimePoint now) {
  const Duration lost_after = silence_.lost_after();
  for (const Member& member : views_->view().members) {
    const auto found = peers_.find(member.id.name);
    if (found == peers_.end() || views_->suspects(member.id)) continue;
    Peer& peer = found->second;
    if (peer.heard == TimePoint{}) peer.heard = now;  // from now on it is expected
    peer.lost = given_up_.contains(member.id) ? "is given up" : why_lost(peer, lost_after, now);
    if (!peer.lost.empty()) views_->suspect(member.id);
  }
}

// Every name has a new process, so nobody is left of the run that this process knows of: not even
// the votes that would end it need be there.
void GroupEngine::begin_again_where_all_are_new(TimePoint now) {
  const View& view = views_->view();
  if (!options_.ends_with_its_processes || view.open() ||
      views_->standing() != ViewEngine::Standing::applies)
    return;
  const auto is_new = [&](const std::string& name) {
    const Member* const former = view.member(name);
    if (name == views_->self().name)
      return former == nullptr || views_->self().replaces(former->id);
    const Peer& peer = peers_.at(name);
    return peer.has_said && now - peer.heard < not_heard * options_.beat &&
           peer.said.base.number <= view.number && view.member(*peer.id) == nullptr &&
           (former == nullptr || peer.id->replaces(former->id));
  };
  if (!std::ranges::all_of(options_.view.names, is_new)) return;
  over_.insert(view.run);
  over_at_ = now;
  ViewOptions options = options_.view;
  options.self = views_->self();
  // Another process than the one that was in views of that run, which it may hear of again.
  ++options.self.counter;
  options.seed = derive_seed(options.seed, {options.self.counter});  // of a run with another number
  views_.emplace(std::move(options));
}

void GroupEngine::tick(TimePoint now) {
  const Duration stood_still = silence_.look(now);
  for (auto& [name, peer] : peers_) {
    // What has come since is of now already.
    if (peer.heard != TimePoint{}) peer.heard = std::min(now, peer.heard + stood_still);
    if (peer.beat != TimePoint{}) peer.beat = std::min(now, peer.beat + stood_still);
  }
  judge(now);
  begin_again_where_all_are_new(now);
  views_->tick(now);
  if (beat_at_ != TimePoint{} && now - beat_at_ < options_.beat) return;
  beat_at_ = now;
  beats_ = true;
}

std::vector<std::pair<std::string, std::string>> GroupEngine::lacking(TimePoint now) const {
  std::vector<std::pair<std::string, std::string>> gone;
  const View& view = views_->view();
  if (view.open()) return gone;
  std::set<ProcessId> left;
  for (const ProcessId& voter : view.voters()) {
    const auto found = peers_.find(voter.name);
    if (found == peers_.end()) {
      if (voter == views_->self()) left.insert(voter);
      continue;
    }
    const Peer& peer = found->second;
    const bool replaced = peer.id && peer.id->replaces(voter);
    if (replaced && now - peer.first >= to_speak_for_the_former) {
      gone.emplace_back(voter.name, "was started again");
    } else if (!replaced && views_->suspects(voter)) {
      gone.emplace_back(voter.name, peer.refuses() ? "not running" : "not reachable");
    } else {
      left.insert(voter);
    }
  }
  if (is_quorum(view, left)) gone.clear();
  return gone;
}

GroupEngine::Wishes GroupEngine::take() {
  Wishes wishes;
  for (const std::string& name : std::exchange(greeted_, {}))
    wishes.send.push_back({name, Terms{options_.terms}});
  ViewEngine::Wishes fresh = views_->take();
  wishes.keep = std::move(fresh.keep);
  wishes.installed = std::move(fresh.installed);
  for (auto& each : fresh.send) {
    std::visit(
        [&](auto& content) { wishes.send.push_back({each.to, GroupMessage(std::move(content))}); },
        each.message);
  }
  if (!wishes.installed.empty()) {
    given_up_.clear();
    for (const Member& member : wishes.installed.back().members) {
      const auto peer = peers_.find(member.id.name);
      // A view that was under way may still have one that is suspected.
      if (peer != peers_.end() && !views_->suspects(member.id)) peer->second.lost.clear();
    }
  }
  if (std::exchange(beats_, false)) {
    own_.base = views_->base();
    for (const auto& [name, peer] : peers_) wishes.send.push_back({name, own_});
  }
  return wishes;
}

}  // namespace dpwa::members
