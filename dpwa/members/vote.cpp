#include "dpwa/members/vote.h"

#include <utility>

#include "dpwa/base/invariant.h"

namespace dpwa::members {

Promise Vote::prepare(const Prepare& question) {
  DPWA_INVARIANT(accepted <= promised, "an accepted ballot was promised", accepted.round,
                 promised.round);
  Promise answer{.base = question.base,
                 .ballot = question.ballot,
                 .voter = owner,
                 .granted = question.ballot > promised,
                 .highest = promised,
                 .accepted = accepted,
                 .value = value,
                 .done = {},
                 .hears = {}};
  if (answer.granted) promised = question.ballot;
  return answer;
}

std::optional<Accepted> Vote::accept(const Accept& proposal) {
  if (proposal.ballot < promised) return std::nullopt;
  DPWA_INVARIANT(accepted <= proposal.ballot, "ballots are accepted in ascending order",
                 accepted.round, proposal.ballot.round);
  promised = accepted = proposal.ballot;
  value = proposal.value;
  return Accepted{proposal.base, proposal.ballot, owner};
}

Kept begin_with(const ProcessId& self, std::optional<Kept> former) {
  Kept kept;
  Vote& own = kept.votes.emplace_back(Vote{.owner = self, .value = {}});
  if (!former) return kept;
  kept.installed = std::move(former->installed);
  const bool open = kept.installed.open();
  if (open && !former->votes.empty()) {
    own = former->votes.front();
    own.owner = self;
  }
  // One that was joining, or wanted to begin a run, may have become a voter before it knew.
  for (Vote& vote : former->votes) {
    if (open) vote = {.owner = vote.owner, .value = {}};
    if (open || kept.installed.member(vote.owner) != nullptr) kept.votes.push_back(std::move(vote));
  }
  return kept;
}

}  // namespace dpwa::members
