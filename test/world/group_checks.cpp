#include "test/world/group_checks.h"

#include <algorithm>

namespace dpwa::world::testing {

using members::View;

void GroupChecks::fail(const std::string& problem) {
  if (problems_.size() < 8) problems_.push_back(problem);
}

void GroupChecks::decided(const View& view) {
  std::uint64_t chain = 0;
  if (!one_chain_) chain = view.open() ? view.before : view.run;
  const auto [known, fresh] = views_.emplace(std::pair{chain, view.number}, view.digest());
  if (!fresh && known->second != view.digest())
    fail("two views have the number " + std::to_string(view.number));
  if (view.open()) {
    open_.insert(view.digest());
  } else {
    runs_.emplace(view.run, runs_.size());
    if (view.quorum == members::Quorum::with_servers &&
        std::ranges::none_of(view.members, &members::Member::serves))
      fail("a view has no server");
    if (open_.contains(view.before) && view.members.size() < enough_)
      fail("a run begins with " + std::to_string(view.members.size()) + " members");
  }
}

void GroupChecks::acts_in(const members::ProcessId& process, const View& view,
                          std::uint64_t settings) {
  decided(view);
  const members::Member* const self = view.member(process);
  if (self == nullptr) return;
  if (view.votes(process) && self->joining) fail("one that is joining votes");
  if (view.settings != settings) fail("members differ in their settings");
}

void GroupChecks::stays(const members::Member& member, const members::Progress& progress) {
  if (member.done != progress)
    fail("a view does not say what " + member.id.name + " had completed before");
}

void GroupChecks::contributes(const members::Progress& done_before, std::uint64_t operation) {
  if (done_before.has(operation))
    fail("operation " + std::to_string(operation) + " is repeated, although one has completed it");
}

void GroupChecks::state(const View& view, std::uint64_t through, std::uint64_t digest) {
  const auto [known, fresh] = states_.emplace(std::pair{view.digest(), through}, digest);
  if (!fresh && known->second != digest)
    fail("members of view " + std::to_string(view.number) + " differ after operation " +
         std::to_string(through));
}

void GroupChecks::completes(const View& view, std::uint64_t operation) {
  completed_.emplace(std::pair{view.run, operation}, latest_run_);
}

void GroupChecks::commit(const View& view, std::uint64_t operation, std::uint64_t result) {
  ++commits_;
  const auto [known, fresh] = results_[view.run].emplace(operation, result);
  if (!fresh && known->second != result)
    fail("operation " + std::to_string(operation) + " has two results");
  // One that is told late may commit it late.
  const std::size_t run = runs_.at(view.run);
  if (run < completed_.at({view.run, operation}))
    fail("a run that was followed by another goes on");
  latest_run_ = std::max(latest_run_, run);
}

}  // namespace dpwa::world::testing
