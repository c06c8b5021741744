#pragma once

#include <cstddef>
#include <set>
#include <utility>
#include <vector>

namespace dpwa {

// Which members there is something to tell of. Each is told a bounded number of times, those told
// least first, so that fresh news is not held up by old (SWIM, section 4.1). At most one entry a
// member. Pure; one owner, one thread.
class MemberNews {
 public:
  void add(std::size_t member);  // afresh: its count begins at 0
  void remove(std::size_t member);
  // Up to `most` members, told once more now; those told `limit` times are dropped.
  std::vector<std::size_t> take(std::size_t most, unsigned limit);
  bool empty() const { return order_.empty(); }
  std::size_t size() const { return order_.size(); }

  // How often news is told among `nodes` nodes: so often that all but a few hear of it.
  static unsigned limit(std::size_t nodes);

 private:
  std::set<std::pair<unsigned, std::size_t>> order_;  // times told, member
  std::vector<int> told_;                             // by member; -1 = not in order_
};

}  // namespace dpwa
