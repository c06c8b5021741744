#include "dpwa/observe/changes.h"

#include <algorithm>

namespace dpwa::observe {
namespace {

const NodeStatus* process_in(const std::vector<NodeStatus>& all, const std::string& name) {
  const auto found = std::ranges::find(all, name, &NodeStatus::name);
  return found == all.end() ? nullptr : &*found;
}

std::string members_of(const Json& group) {
  const Json& members = list_in(group, "members");
  return members.size() > 8 ? std::to_string(members.size()) + " nodes"
                            : names_in(group, "members");
}

class Comparison {
 public:
  Comparison(const NodeStatus& before, const NodeStatus& now) : before_(before), now_(now) {}

  std::vector<Change> made() {
    const std::string was_absent = absence_of(before_);
    const std::string is_absent = absence_of(now_);
    if (is_absent.empty() != was_absent.empty())
      add(is_absent.empty() ? "answers" : is_absent, !is_absent.empty());
    const bool is_first = before_.member == "-" && now_.member == "alive";
    if (now_.member != before_.member && now_.member != "-" && !is_first) {
      const bool bad = now_.member == "suspect" || now_.member == "dead";
      add("is " + now_.member + " for the others", bad);
    }
    if (is_absent.empty() && was_absent.empty()) compare_documents();
    return std::move(made_);
  }

 private:
  void add(const std::string& words, bool is_bad = false) {
    made_.push_back({now_.name, words, is_bad});
  }

  void compare_documents() {
    const Json& was = before_.document;
    const Json& is = now_.document;
    if (count_in(is, "incarnation") != count_in(was, "incarnation")) add("was started again");
    const std::string state = field_text(is, "state");
    if (state != field_text(was, "state")) add("is " + state, state == "stale");
    compare_groups(object_in(was, "collective"), object_in(is, "collective"));
    if (count_in(is, "epoch") != count_in(was, "epoch"))
      add("has epoch " + std::to_string(count_in(is, "epoch")));
    const std::string lost = names_in(is, "lost");
    if (!lost.empty() && lost != names_in(was, "lost")) add("lost the values of " + lost, true);
    const Json& firewall = object_in(is, "firewall");
    const Json& older = object_in(was, "firewall");
    const auto refused = [](const Json& counters) {
      return count_in(counters, "distance_refused") + count_in(counters, "not_finite");
    };
    if (refused(firewall) > refused(older)) add("refused parameters of a peer", true);
  }

  void compare_groups(const Json& was, const Json& is) {
    if (count_in(is, "epoch") != count_in(was, "epoch"))
      add("is in group " + std::to_string(count_in(is, "epoch")) + ": " + members_of(is));
    if (flag_in(is, "apart") && !flag_in(was, "apart")) add("trains apart", true);
    if (flag_in(is, "seeks") && !flag_in(was, "seeks")) add("seeks a group", true);
  }

  const NodeStatus& before_;
  const NodeStatus& now_;
  std::vector<Change> made_;
};

void compare(const std::vector<NodeStatus>& before, const std::vector<NodeStatus>& now,
             std::vector<Change>& made) {
  for (const NodeStatus& process : now) {
    if (const NodeStatus* const earlier = process_in(before, process.name)) {
      for (Change& change : Comparison(*earlier, process).made()) made.push_back(std::move(change));
    } else if (!before.empty()) {
      made.push_back({process.name, "joined at " + process.address, false});
    }
  }
  for (const NodeStatus& process : before) {
    if (process_in(now, process.name) == nullptr) made.push_back({process.name, "is gone", true});
  }
}

}  // namespace

std::vector<Change> changes(const ClusterStatus& before, const ClusterStatus& now) {
  std::vector<Change> made;
  compare(before.nodes, now.nodes, made);
  compare(before.servers, now.servers, made);
  return made;
}

}  // namespace dpwa::observe
