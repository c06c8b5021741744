// Many random runs of the rule of next_group.h: nodes die, come back, freeze and lose sight of each
// other while groups form, fail to form, or form for some of their members alone.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>

#include "adapters/collective/next_group.h"
#include "dpwa/base/random.h"

namespace dpwa::collective {
namespace {

class World {
 public:
  World(std::size_t nodes, std::uint64_t seed) : random_(seed), nodes_(nodes), side_(nodes, 0) {
    for (auto& node : nodes_) start(node);
  }

  void happen() {
    switch (random_.below(10)) {
      case 0:
        return kill();
      case 1:
        return restart();
      case 2:
        for (auto& side : side_) side = random_.below(3) == 0 ? 1 : 0;
        return;
      case 3:
      case 4:
        std::ranges::fill(side_, 0);
        return;
      default:
        decide(random_.below(nodes_.size()));
        if (random_.below(2) == 0) complete(random_.below(nodes_.size()));
        notice(random_.below(nodes_.size()));
    }
  }

  void calm_down() {
    std::ranges::fill(side_, 0);
    for (auto& node : nodes_) {
      if (!node.alive) start(node);
    }
    for (int round = 0; round < 60; ++round) {
      for (std::size_t i = 0; i < nodes_.size(); ++i) notice(i);
      for (std::size_t i = 0; i < nodes_.size(); ++i) decide(i);
      for (std::size_t i = 0; i < nodes_.size(); ++i) complete(i);
    }
  }

  // Groups all of whose members work in them and reach one another: all that could make a step.
  std::vector<GroupMembers> at_work() const {
    std::vector<GroupMembers> found;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      const GroupMembers& group = nodes_[i].notes.formed;
      if (!nodes_[i].alive || nodes_[i].notes.seeks || group.epoch == 0) continue;
      if (std::ranges::find(found, group) != found.end()) continue;
      const bool whole = std::ranges::all_of(group.members, [&](const auto& member) {
        const Node& node = nodes_[member.place];
        return is(member) && node.notes.formed == group && !node.notes.seeks &&
               side_[member.place] == side_[i];
      });
      if (whole) found.push_back(group);
    }
    return found;
  }

  bool all_together() const {
    const auto groups = at_work();
    return groups.size() == 1 && groups.front().members.size() == nodes_.size();
  }
  // A part that lost its majority for good: the run is over for it, by the rule.
  bool stuck() const {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (next_group(sights_of(i), i, true, nodes_[i].failed).step == NextGroup::Step::minority)
        return true;
    }
    return false;
  }

 private:
  struct Node {
    bool alive = false;
    std::uint64_t incarnation = 0;
    std::uint64_t failed = 0;
    GroupNotes notes;
    std::optional<GroupMembers> attempt;
  };

  void start(Node& node) {
    node = {};
    node.alive = true;
    node.incarnation = ++starts_;
    node.notes.seeks = true;
  }
  void kill() { nodes_[random_.below(nodes_.size())].alive = false; }
  void restart() {
    Node& node = nodes_[random_.below(nodes_.size())];
    if (!node.alive) start(node);
  }
  bool is(const GroupMembers::Member& member) const {
    const Node& node = nodes_[member.place];
    return node.alive && node.incarnation == member.incarnation;
  }

  std::vector<MemberView> sights_of(std::size_t self) const {
    std::vector<MemberView> views(nodes_.size());
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      views[i].name = std::to_string(i);
      if (side_[i] != side_[self]) {
        views[i].reach = MemberView::Reach::silent;
        views[i].given_up = true;
      } else if (!nodes_[i].alive) {
        views[i].reach = MemberView::Reach::refused;
      } else {
        views[i].reach = MemberView::Reach::answers;
        views[i].incarnation = nodes_[i].incarnation;
        views[i].notes = nodes_[i].notes;
      }
    }
    return views;
  }

  // A member of a broken group learns of it, at some time.
  void notice(std::size_t self) {
    Node& node = nodes_[self];
    if (!node.alive || node.notes.seeks) return;
    const bool broken = std::ranges::any_of(node.notes.formed.members, [&](const auto& member) {
      const Node& other = nodes_[member.place];
      return !is(member) || side_[member.place] != side_[self] || other.notes.seeks ||
             other.notes.formed.epoch > node.notes.formed.epoch;
    });
    if (!broken) return;
    node.notes.seeks = true;
    node.attempt.reset();
  }

  void decide(std::size_t self) {
    Node& node = nodes_[self];
    if (!node.alive) return;
    const NextGroup next = next_group(sights_of(self), self, random_.below(2) == 0, node.failed);
    const bool tries = next.step == NextGroup::Step::host || next.step == NextGroup::Step::follow;
    if (node.attempt && tries && *node.attempt == next.group) return;
    if (node.attempt && !connected_.contains(node.attempt->hash())) {
      node.failed = std::max(node.failed, node.attempt->epoch);
      node.attempt.reset();
      node.notes.store_port = 0;
    }
    if (!tries || node.attempt) return;
    node.attempt = next.group;
    node.notes.vote = next.group;
    node.notes.store_port = next.step == NextGroup::Step::host ? 1 : 0;
    const bool all = std::ranges::all_of(next.group.members, [&](const auto& member) {
      return is(member) && nodes_[member.place].attempt == next.group &&
             side_[member.place] == side_[self];
    });
    if (all) connected_.insert(next.group.hash());
  }

  // Where all were there at one moment each ends the forming by itself, well or not.
  void complete(std::size_t self) {
    Node& node = nodes_[self];
    if (!node.alive || !node.attempt || !connected_.contains(node.attempt->hash())) return;
    const GroupMembers group = *node.attempt;
    node.attempt.reset();
    node.notes.store_port = 0;
    if (std::ranges::all_of(group.members, [&](const auto& member) { return is(member); })) {
      node.notes.formed = group;
      node.notes.seeks = false;
    } else {
      node.failed = std::max(node.failed, group.epoch);
    }
  }

  Random random_;
  std::vector<Node> nodes_;
  std::vector<int> side_;
  std::set<std::uint64_t> connected_;
  std::uint64_t starts_ = 0;
};

}  // namespace

TEST_CASE("there are never two groups at work, and all come together once the storm is over") {
  std::size_t worked = 0;
  std::size_t ended = 0;
  for (std::uint64_t seed = 1; seed <= 600; ++seed) {
    CAPTURE(seed);
    const std::size_t nodes = 2 + seed % 5;
    World world(nodes, seed);
    for (int event = 0; event < 150; ++event) {
      world.happen();
      const auto groups = world.at_work();
      worked += groups.size();
      REQUIRE(groups.size() <= 1);
    }
    world.calm_down();
    REQUIRE(world.at_work().size() <= 1);
    if (world.all_together()) continue;
    ++ended;
    CHECK(world.stuck());
  }
  CHECK(worked > 1000);
  CHECK(ended < 60);
}

}  // namespace dpwa::collective
