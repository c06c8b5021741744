#include "dpwa/members/view.h"

#include <algorithm>

#include "dpwa/base/random.h"

namespace dpwa::members {

bool Progress::add(std::uint64_t operation) {
  if (has(operation)) return false;
  beyond.insert(operation);
  while (beyond.erase(through + 1) > 0) ++through;
  return true;
}

void Progress::add(const Progress& other) {
  if (other.through > through) {
    through = other.through;
    beyond.erase(beyond.begin(), beyond.upper_bound(through));
    while (beyond.erase(through + 1) > 0) ++through;
  }
  for (const std::uint64_t operation : other.beyond) add(operation);
}

bool Progress::covers(const Progress& other) const {
  // Not has(other.through): it may have that one, and not all before it.
  return through >= other.through &&
         std::ranges::all_of(other.beyond, [&](std::uint64_t each) { return has(each); });
}

void Progress::keep_common(const Progress& other) {
  Progress common{std::min(through, other.through), {}};
  const Progress& further = through > other.through ? *this : other;
  for (std::uint64_t each = common.through + 1; each <= further.through; ++each) {
    if (has(each) && other.has(each)) common.add(each);
  }
  for (const std::uint64_t each : further.beyond) {
    if (has(each) && other.has(each)) common.add(each);
  }
  *this = std::move(common);
}

const Member* View::member(const ProcessId& id) const {
  const auto found = std::ranges::find(members, id, &Member::id);
  return found == members.end() ? nullptr : &*found;
}

const Member* View::member(const std::string& name) const {
  const auto found =
      std::ranges::find_if(members, [&](const Member& each) { return each.id.name == name; });
  return found == members.end() ? nullptr : &*found;
}

bool View::votes(const ProcessId& id) const {
  const Member* const found = member(id);
  return found != nullptr && !found->joining;
}

std::vector<ProcessId> View::voters() const {
  std::vector<ProcessId> found;
  for (const Member& each : members) {
    if (!each.joining) found.push_back(each.id);
  }
  return found;
}

Progress View::done() const {
  Progress all;
  for (const Member& each : members) {
    if (!each.joining) all.add(each.done);
  }
  return all;
}

bool View::sound() const {
  constexpr std::uint64_t most = std::uint64_t{1} << 62;
  std::set<std::string> names;
  for (const Member& each : members) names.insert(each.id.name);
  return number < most && names.size() == members.size() &&
         std::ranges::is_sorted(members, {}, &Member::joining) &&
         (open() || !members.front().joining);
}

std::uint64_t View::digest() const {
  std::uint64_t value = derive_seed(
      run, {number, before, static_cast<std::uint64_t>(quorum), settings, members.size()});
  for (const Member& each : members) {
    const std::uint64_t flags = (each.joining ? 1U : 0U) | (each.serves ? 2U : 0U);
    value = derive_seed(value, {hash_of(each.id.name), each.id.counter, each.id.nonce, flags,
                                each.done.through, each.done.beyond.size()});
    for (const std::uint64_t operation : each.done.beyond) value = derive_seed(value, {operation});
  }
  return value;
}

bool is_quorum(const View& view, const std::set<ProcessId>& voters) {
  std::size_t all = 0;
  std::size_t yes = 0;
  std::size_t servers = 0;
  std::size_t servers_yes = 0;
  bool has_first = false;
  for (const Member& each : view.members) {
    if (each.joining) continue;
    const bool in = voters.contains(each.id);
    has_first |= in && all == 0;
    ++all;
    yes += in ? 1 : 0;
    servers += each.serves ? 1 : 0;
    servers_yes += in && each.serves ? 1 : 0;
  }
  const bool majority = 2 * yes > all || (has_first && 2 * yes == all);
  if (view.quorum == Quorum::majority) return majority;
  return servers_yes > 0 && (majority || servers_yes == servers);
}

}  // namespace dpwa::members
