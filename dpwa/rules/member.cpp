#include "dpwa/rules/member.h"

#include <algorithm>
#include <bit>
#include <span>
#include <tuple>
#include <utility>

#include "dpwa/base/random.h"

namespace dpwa {

bool supersedes(const MemberClaim& claim, const MemberClaim& held) {
  const auto order = [](const MemberClaim& c) {
    return std::tuple(c.incarnation, c.refutation, c.status);
  };
  return order(claim) > order(held);
}

std::uint64_t digest_of(const MemberClaim& claim) {
  return derive_seed(hash_of(claim.name), {claim.incarnation, claim.refutation});
}

void MemberNews::add(std::size_t member) {
  if (member >= told_.size()) told_.resize(member + 1, nothing);
  size_ += told_[member] == nothing ? 1 : 0;
  told_[member] = 0;
}

void MemberNews::remove(std::size_t member) {
  if (member >= told_.size() || told_[member] == nothing) return;
  told_[member] = nothing;
  --size_;
}

std::vector<std::size_t> MemberNews::take(std::size_t most, unsigned limit) {
  if (empty()) return {};
  std::vector<std::pair<unsigned, std::size_t>> order;  // times told, member
  order.reserve(size_);
  for (std::size_t member = 0; member < told_.size(); ++member)
    if (told_[member] != nothing) order.emplace_back(told_[member], member);
  const auto end = order.begin() + static_cast<std::ptrdiff_t>(std::min(most, order.size()));
  std::partial_sort(order.begin(), end, order.end());
  std::vector<std::size_t> taken;
  for (const auto& [times, member] : std::span(order.begin(), end)) {
    taken.push_back(member);
    if (++told_[member] >= limit) remove(member);
  }
  return taken;
}

unsigned MemberNews::limit(std::size_t nodes) {
  return 2 * static_cast<unsigned>(std::bit_width(nodes)) + 2;
}

}  // namespace dpwa
