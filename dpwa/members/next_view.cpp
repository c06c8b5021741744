#include "dpwa/members/next_view.h"

#include <algorithm>
#include <utility>

namespace dpwa::members {
namespace {

View begin_run(const Promises& promises, const Facts& facts, std::uint64_t run) {
  View next{.run = run, .quorum = facts.of_new_run, .members = {}};
  for (const std::string& name : facts.names) {
    for (const auto& [voter, promise] : promises.of) {
      const auto apply = facts.apply.find(voter);
      if (voter.name != name || !promise.lives || apply == facts.apply.end()) continue;
      next.settings = apply->second.settings;
      next.members.push_back({voter, false, apply->second.serves, {}});
    }
  }
  return next;
}

// Those that may leave. While a worker stays, or joins, so do the servers, unless one of them stays
// anyway.
std::set<ProcessId> leaving(const View& base, const Facts& facts) {
  std::set<ProcessId> leaving = facts.leaving;
  if (base.quorum != Quorum::with_servers) return leaving;
  bool some_stay = false;
  bool server_stays = false;
  for (const Member& member : base.members) {
    if (leaving.contains(member.id)) continue;
    some_stay = true;
    server_stays |= member.serves && !member.joining && !facts.gone.contains(member.id);
  }
  if (some_stay && !server_stays) {
    for (const Member& member : base.members) {
      if (member.serves && !member.joining) leaving.erase(member.id);
    }
  }
  return leaving;
}

}  // namespace

bool is_decided(const View& base, const std::set<ProcessId>& voters, const Facts& facts) {
  if (!base.open()) return is_quorum(base, voters);
  std::set<std::string> names;
  for (const ProcessId& voter : voters) {
    if (std::ranges::find(facts.names, voter.name) != facts.names.end()) names.insert(voter.name);
  }
  return names.size() >= facts.enough;
}

bool Promises::decide(const View& base, const Facts& facts) const {
  std::set<ProcessId> voters;
  for (const auto& [voter, promise] : of) voters.insert(voter);
  return is_decided(base, voters, facts);
}

const Promise* Promises::living(const ProcessId& id) const {
  const auto found = of.find(id);
  return found != of.end() && found->second.lives ? &found->second : nullptr;
}

const Promise* Promises::accepted() const {
  const Promise* highest = nullptr;
  for (const auto& [voter, promise] : of) {
    if (promise.accepted.round == 0) continue;
    if (highest == nullptr || promise.accepted > highest->accepted) highest = &promise;
  }
  return highest;
}

bool Promises::caught_up(const View& base, const ProcessId& joining) const {
  std::optional<Progress> common;
  for (const ProcessId& voter : base.voters()) {
    const Promise* const promise = living(voter);
    if (promise == nullptr) continue;
    if (!common) {
      common = promise->done;
    } else {
      common->keep_common(promise->done);
    }
  }
  const Promise* const own = living(joining);
  return own != nullptr && common && own->done.covers(*common);
}

bool Promises::hear(const View& members, const ProcessId& applicant) const {
  return std::ranges::all_of(members.voters(), [&](const ProcessId& voter) {
    const Promise* const promise = living(voter);
    return promise != nullptr && promise->hears.contains(applicant);
  });
}

std::optional<View> next_view(const View& base, const Promises& promises, const Facts& facts,
                              std::uint64_t run) {
  View next;
  if (base.open()) {
    next = begin_run(promises, facts, run);
    if (next.members.size() < facts.enough || next.members.empty()) return std::nullopt;
  } else {
    next = {.run = base.run, .quorum = base.quorum, .settings = base.settings, .members = {}};
    std::vector<Member> joining;
    const std::set<ProcessId> leave = leaving(base, facts);
    bool all_leave = true;
    bool one_leaves = false;  // with the state of the run: nobody is left to take part in it
    for (Member member : base.members) {
      const Promise* const promise = promises.living(member.id);
      if (leave.contains(member.id)) {
        one_leaves |= !member.joining && promise != nullptr;
        continue;
      }
      if (!member.joining && promise == nullptr) all_leave = false;
      if (facts.gone.contains(member.id) && promise == nullptr) continue;
      if (promise != nullptr) member.done = promise->done;
      if (member.joining && facts.ready.contains(member.id) && promises.caught_up(base, member.id))
        member.joining = false;
      if (member.joining) {
        member.done = {};
        joining.push_back(std::move(member));
      } else if (promise != nullptr) {
        next.members.push_back(std::move(member));
      }
    }
    if (next.members.empty()) {
      if (!all_leave && !one_leaves && !facts.closes) return std::nullopt;
      next = {.members = {}};
    } else {
      std::ranges::move(joining, std::back_inserter(next.members));
      for (const auto& [id, apply] : facts.apply) {
        if (next.member(id.name) == nullptr && promises.hear(next, id))
          next.members.push_back({id, /*joining=*/true, apply.serves, {}});
      }
    }
  }
  // Until a server that has values answers.
  if (!next.open() && next.quorum == Quorum::with_servers &&
      std::ranges::none_of(next.members,
                           [](const Member& each) { return each.serves && !each.joining; }))
    return std::nullopt;
  next.number = base.number + 1;
  next.before = base.digest();
  return next;
}

bool wants_change(const View& base, const Facts& facts) {
  if (base.open()) {
    return static_cast<std::size_t>(std::ranges::count_if(facts.names, [&](const auto& name) {
             return std::ranges::any_of(facts.apply,
                                        [&](const auto& each) { return each.first.name == name; });
           })) >= facts.enough;
  }
  const std::set<ProcessId> leave = leaving(base, facts);
  return facts.closes || !facts.apply.empty() ||
         std::ranges::any_of(base.members, [&](const Member& member) {
           return leave.contains(member.id) || facts.gone.contains(member.id) ||
                  (member.joining && facts.ready.contains(member.id));
         });
}

}  // namespace dpwa::members
