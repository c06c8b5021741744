#include "dpwa/members/proposer.h"

#include <algorithm>
#include <utility>

namespace dpwa::members {
namespace {

// Whether all have promised that may be expected to.
bool all_answered(const View& view, const Promises& promises, const Facts& facts) {
  if (view.open()) {
    return std::ranges::all_of(facts.apply,
                               [&](const auto& each) { return promises.of.contains(each.first); });
  }
  return std::ranges::all_of(view.members, [&](const Member& member) {
    if (facts.gone.contains(member.id)) return true;
    return facts.ready.contains(member.id) ? promises.caught_up(view, member.id)
                                           : promises.of.contains(member.id);
  });
}

}  // namespace

Prepare Proposer::begin(const Base& base, const ProcessId& self, std::uint64_t promised,
                        TimePoint now) {
  if (!attempt_) {
    attempt_ = Attempt{.ballot = {}, .asked = now, .promises = {}, .value = {}, .accepted = {}};
  }
  round_ = std::max(round_, promised) + 1;
  attempt_->ballot = {round_, self};
  attempt_->until = now + patience_.delay(++attempt_->ballots, random_) *
                              (std::exchange(attempt_->led_to_none, false) ? longer : 1);
  attempt_->promises = {};
  attempt_->value.reset();
  attempt_->accepted.clear();
  return {base, attempt_->ballot};
}

void Proposer::note(const Promise& promise) {
  round_ = std::max(round_, std::min(promise.highest.round, most_rounds));
  if (!attempt_ || !promise.granted || promise.ballot != attempt_->ballot || attempt_->value)
    return;
  // One that is joining tells again how far it is.
  attempt_->promises.of.insert_or_assign(promise.voter, promise);
}

std::optional<Accept> Proposer::choose(const View& view, const Base& base, const Facts& facts,
                                       TimePoint now,
                                       const std::function<void(const ProcessId&)>& denied) {
  if (!attempt_ || attempt_->value) return std::nullopt;
  const Promises& promises = attempt_->promises;
  if (!promises.decide(view, facts)) return std::nullopt;
  if (!all_answered(view, promises, facts) && now < attempt_->until) return std::nullopt;
  std::optional<View> next;
  if (const Promise* const accepted = promises.accepted()) {
    next = accepted->value;
  } else {
    next = next_view(view, promises, facts, random_.next());
    for (const auto& [id, apply] : facts.apply) {
      if (next && next->member(id) == nullptr) denied(id);
    }
  }
  attempt_->led_to_none = !next;
  if (!next) return std::nullopt;
  if (!next->follows(base)) {
    end();
    return std::nullopt;
  }
  attempt_->value = next;
  attempt_->until = now + patience_.delay(attempt_->ballots, random_);
  return Accept{base, attempt_->ballot, *std::move(next)};
}

std::optional<View> Proposer::note(const Accepted& vote, const View& view, const Facts& facts) {
  if (!attempt_ || !attempt_->value || vote.ballot != attempt_->ballot) return std::nullopt;
  attempt_->accepted.insert(vote.voter);
  return is_decided(view, attempt_->accepted, facts) ? attempt_->value : std::nullopt;
}

std::vector<std::string> Proposer::missing(const std::set<std::string>& names, TimePoint now,
                                           Duration after) const {
  std::vector<std::string> missing;
  if (!attempt_ || now - attempt_->asked < after) return missing;
  for (const std::string& name : names) {
    const auto answered = [&](const auto& each) { return each.first.name == name; };
    if (std::ranges::none_of(attempt_->promises.of, answered)) missing.push_back(name);
  }
  return missing;
}

}  // namespace dpwa::members
