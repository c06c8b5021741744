#include "test/world/step_checks.h"

#include <algorithm>

namespace dpwa::world::testing {

void StepChecks::fail(const std::string& problem) {
  if (problems_.size() < 8) problems_.push_back(problem);
}

void StepChecks::decided(const members::View& view) {
  const std::uint64_t chain = view.open() ? view.before : view.run;
  const auto [known, fresh] = views_.emplace(std::pair{chain, view.number}, view.digest());
  if (!fresh && known->second != view.digest())
    fail("two views have the number " + std::to_string(view.number));
}

void StepChecks::forms(std::uint64_t group, const members::GroupMembers& members) {
  const auto [known, fresh] = groups_.emplace(group, members);
  if (!fresh && known->second != members) fail("two groups have one name");
}

void StepChecks::sums(const std::vector<std::vector<std::uint64_t>>& operations,
                      std::size_t members) {
  for (const auto& gradients : operations) {
    if (gradients != operations.front()) fail("operations of one step have different sums");
    const std::set<std::uint64_t> once(gradients.begin(), gradients.end());
    if (once.size() != gradients.size()) fail("a gradient is twice in one sum");
  }
  if (operations.front().size() > members) fail("a sum has more gradients than members");
}

void StepChecks::steps(std::uint64_t group, const Model& before,
                       const std::vector<std::uint64_t>& gradients, const Model& after) {
  ++steps_;
  for (const std::uint64_t gradient : gradients) {
    if (before.gradients.contains(gradient)) fail("a gradient is in two sums");
  }
  const std::pair state{after.weights, after.optimizer};
  const auto [known, fresh] = states_.emplace(std::pair{group, after.history.size()}, state);
  if (fresh || known->second == state) return;
  fail(std::string("members of a group differ in their ") +
       (known->second.first == after.weights ? "optimizers" : "weights") + " after step " +
       std::to_string(after.history.size()));
}

void StepChecks::enters(const Model& own, const Model& source) {
  if (own.weights != source.weights)
    fail("members of the last group enter the next one with different weights, at step " +
         std::to_string(own.history.size()));
}

void StepChecks::takes_over(const Model& own, bool was_member, std::uint64_t made,
                            const Model& source) {
  ++taken_over_;
  if (was_member && source.history.size() < own.history.size())
    fail("a member goes back behind a step that it has made");
  const auto [end, other] = std::ranges::mismatch(own.history, source.history);
  const auto lost =
      std::min<std::uint64_t>(made, static_cast<std::uint64_t>(own.history.end() - end));
  if (lost > 1)
    fail(std::to_string(lost) + " steps of a member are not in the state that it takes over");
}

}  // namespace dpwa::world::testing
