#include "dpwa/collective/group_session.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "dpwa/base/stop_signal.h"
#include "dpwa/collective/terms.h"

namespace dpwa::collective {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds patience_for_the_news(200);
constexpr std::chrono::seconds patience_with_the_others(5);
constexpr std::chrono::milliseconds between_news(20);

}  // namespace

GroupSession::GroupSession(const Config& config, LocalProcess& local,
                           std::shared_ptr<group::Inbox> inbox, Settings terms, Connector connector)
    : config_(config),
      board_(local.notes, config.self_index()),
      node_(config, local, std::move(inbox), std::move(terms),
            file_terms(config, connector.engine).size()),
      former_(config, local, node_, board_, std::move(connector)) {}

GroupSession::~GroupSession() {
  drop();
}

Place GroupSession::place() const {
  return {static_cast<std::size_t>(group_->rank()), static_cast<std::size_t>(group_->size())};
}

const std::string& GroupSession::name_of(int rank) const {
  return membership_.members[static_cast<std::size_t>(rank)].id.name;
}

void GroupSession::take_up(GroupFormer::Formed formed) {
  drop();
  before_ = std::exchange(membership_, std::move(formed.membership));
  group_ = std::move(formed.group);
  watch_ = std::make_unique<RankWatch>(config_, node_, board_, waits_, membership_, group_);
}

void GroupSession::drop() {
  if (!group_) return;
  watch_.reset();
  group_->abort();
  group_.reset();
}

void GroupSession::begin_at(std::uint64_t step) {
  begins_ = step;
  while (true) {
    const auto state = node_.state();
    // Another one is not for this group, which is about to end then.
    const auto counts = members::step_counts(membership_, state.view, state.self);
    if (counts != members::StepCounts::in_a_view || begin_in(state.view.number)) return;
    std::this_thread::yield();  // the next view is being written
  }
}

bool GroupSession::begin_in(std::uint64_t view) {
  view_ = view;
  if (begins_ && !node_.begin_at(view, *begins_)) return false;
  begins_.reset();
  return true;
}

bool GroupSession::complete(std::uint64_t step) {
  if (!begins_ && node_.complete(view_, step)) return true;
  std::uint64_t seen = 0;
  while (true) {
    const auto state = node_.state();
    const auto counts = members::step_counts(membership_, state.view, state.self);
    if (counts != members::StepCounts::in_a_view) return counts == members::StepCounts::yes;
    if (begin_in(state.view.number) && node_.complete(view_, step)) return true;
    if (!minority_in(state).empty() || stop_signal::received() != 0) return false;
    seen = node_.wait_for_change(seen, SteadyClock::now() + between_news);
  }
}

void GroupSession::note_state(std::uint64_t step, std::uint64_t digest) {
  node_.note_state(step, digest);
}

void GroupSession::note_apart(bool apart) {
  board_.change([apart](GroupNotes& notes) { notes.apart = apart; });
}

void GroupSession::note_left() {
  board_.change([](GroupNotes& notes) { notes.left = true; });
  node_.forget();
}

void GroupSession::leave() {
  board_.change([](GroupNotes& notes) { notes.left = true; });
  drop();
  node_.leave();
  const auto until = SteadyClock::now() + patience_with_the_others;
  const auto others_need_it = [&](const group::GroupNode::State& state) {
    return std::ranges::any_of(state.view.members, [&](const members::Member& member) {
      const auto peer = state.peers.find(member.id.name);
      return peer != state.peers.end() && !peer->second.refuses() &&
             state.at - peer->second.heard < state.lost_after;
    });
  };
  for (auto state = node_.state(); state.in_view() && others_need_it(state) && state.at < until;
       state = node_.state())
    std::this_thread::sleep_for(between_news);
  node_.forget();
}

std::string GroupSession::missed() const {
  std::string names;
  for (const auto& member : before_.members) {
    if (membership_.find(member.place) == nullptr)
      names += (names.empty() ? "'" : ", '") + member.id.name + "'";
  }
  return names;
}

std::string GroupSession::gone() const {
  return gone_in(node_.state(), membership_);
}

std::string GroupSession::suspect() const {
  if (!together()) return "";
  if (std::string known = gone(); !known.empty()) return known;
  if (std::string lost = watch_->lost(); !lost.empty()) return lost;
  const auto rank = group_->lost_rank();
  if (!rank || *rank == group_->rank()) return "";
  return "'" + name_of(*rank) + "' is lost";
}

std::string GroupSession::lost_node() const {
  if (!together()) return "";
  const auto until = SteadyClock::now() + patience_for_the_news;
  while (true) {
    if (std::string known = suspect(); !known.empty()) return known;
    if (SteadyClock::now() >= until) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  const auto state = node_.state();
  std::string silent;
  for (const auto& member : membership_.members) {
    const auto peer = state.peers.find(member.id.name);
    if (peer == state.peers.end()) continue;
    if (peer->second.refusals > 0 || !state.answers(peer->second))
      silent += (silent.empty() ? "'" : ", '") + member.id.name + "'";
  }
  return silent.empty() ? "" : "no answer from " + silent;
}

}  // namespace dpwa::collective
