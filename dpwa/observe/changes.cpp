#include "dpwa/observe/changes.h"

#include <algorithm>

namespace dpwa::observe {
namespace {

const NodeStatus* process_in(const std::vector<NodeStatus>& all, const std::string& name) {
  const auto found = std::ranges::find(all, name, &NodeStatus::name);
  return found == all.end() ? nullptr : &*found;
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
    const auto process = [](const NodeStatus& of) { return count_in(of.document, "incarnation"); };
    const bool both = is_absent.empty() && was_absent.empty();
    if (both && process(now_) != process(before_)) add("was started again");
    return std::move(made_);
  }

 private:
  void add(const std::string& words, bool is_bad = false) {
    made_.push_back({now_.name, words, is_bad});
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
