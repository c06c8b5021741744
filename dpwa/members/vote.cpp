#include "dpwa/members/vote.h"

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

}  // namespace dpwa::members
