#include "dpwa/collectives/exchanges.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <numeric>
#include <vector>

#include "dpwa/base/invariant.h"
#include "dpwa/collectives/plan.h"

namespace dpwa::collectives {
namespace {

void copy(std::span<const std::byte> from, std::byte* into) {
  if (!from.empty() && from.data() != into) std::memcpy(into, from.data(), from.size());
}

// Blocks of equal size, one of each rank.
class Blocks {
 public:
  Blocks(std::span<std::byte> all, int size)
      : all_(all), size_(size), block_bytes_(all.size() / static_cast<std::size_t>(size)) {}

  std::span<std::byte> at(int rank) const { return run(rank, 1); }
  // From `first` on, which do not go beyond the last rank.
  std::span<std::byte> run(int first, int count) const {
    return all_.subspan(static_cast<std::size_t>(first) * block_bytes_,
                        static_cast<std::size_t>(count) * block_bytes_);
  }
  // Calls `each` with the blocks from `first` on, which continue with rank 0 after the last.
  template <typename Each>
  void around(int first, int count, const Each& each) const {
    const int begin = wrapped(first, size_);
    const int before_end = std::min(count, size_ - begin);
    each(run(begin, before_end));
    if (count > before_end) each(run(0, count - before_end));
  }

 private:
  const std::span<std::byte> all_;
  const int size_;
  const std::size_t block_bytes_;
};

// Each member sends its block to all others.
void gather_directly(Links& links, const Blocks& blocks) {
  const int size = links.size();
  const int rank = links.rank();
  for (int distance = 1; distance < size; ++distance) {
    const int from = wrapped(rank - distance, size);
    links.receive(from, blocks.at(from));
    links.send(wrapped(rank + distance, size), blocks.at(rank));
  }
  finish(links);
}

// In each step a member has twice as many blocks, those of its own rank and of the next ones, and
// gets as many again of the member behind them (Bruck et al., 1997, without its rotation).
void gather_by_doubling(Links& links, const Blocks& blocks) {
  const int size = links.size();
  const int rank = links.rank();
  for (int have = 1; have < size; have *= 2) {
    const int count = std::min(have, size - have);
    const int from = wrapped(rank + have, size);
    const int to = wrapped(rank - have, size);
    Links::Ticket last = 0;
    blocks.around(from, count, [&](std::span<std::byte> run) { last = links.receive(from, run); });
    blocks.around(rank, count, [&](std::span<std::byte> run) { links.send(to, run); });
    await_received(links, from, last);
  }
  finish(links);
}

// Where a member stands in a broadcast, by ranks that are counted from the root.
struct Place {
  int parent = -1;  // -1: none
  std::vector<int> children;
};

Place in_chain(int rank, int size) {
  Place place;
  place.parent = rank - 1;
  if (rank + 1 < size) place.children.push_back(rank + 1);
  return place;
}

// A binomial tree: the farthest children, which have the most below them, come first.
Place in_tree(int rank, int size) {
  Place place;
  const auto own = static_cast<unsigned>(rank);
  const unsigned low = own & (~own + 1);  // the lowest bit
  if (rank > 0) place.parent = static_cast<int>(own - low);
  const unsigned below = rank > 0 ? low : std::bit_ceil(static_cast<unsigned>(size));
  for (unsigned distance = below / 2; distance > 0; distance /= 2) {
    if (own + distance < static_cast<unsigned>(size))
      place.children.push_back(static_cast<int>(own + distance));
  }
  return place;
}

std::size_t total_of(std::span<const std::size_t> counts) {
  return std::accumulate(counts.begin(), counts.end(), std::size_t{0});
}

}  // namespace

void await_received(Links& links, int from, Links::Ticket ticket) {
  while (links.received(from) < ticket) links.advance();
}

void finish(Links& links) {
  while (!links.idle()) links.advance();
}

void gather_all(Links& links, std::span<const std::byte> own, std::span<std::byte> all) {
  const int size = links.size();
  DPWA_INVARIANT(all.size() == own.size() * static_cast<std::size_t>(size),
                 "room for the bytes of every member", all.size(), own.size(), size);
  const Blocks blocks(all, size);
  copy(own, blocks.at(links.rank()).data());
  if (sends_directly(own.size(), size)) {
    gather_directly(links, blocks);
  } else {
    gather_by_doubling(links, blocks);
  }
}

void spread(Links& links, std::span<std::byte> data, int root) {
  const int size = links.size();
  DPWA_INVARIANT(root >= 0 && root < size, "the root is a member", root, size);
  const BroadcastPlan plan = plan_broadcast(data.size(), size);
  const int counted = wrapped(links.rank() - root, size);
  const Place place = plan.chain ? in_chain(counted, size) : in_tree(counted, size);
  const int parent = wrapped(place.parent + root, size);
  const bool receives = place.parent >= 0;
  std::vector<Links::Ticket> tickets;
  for (std::size_t at = 0; receives && at < data.size(); at += plan.chunk_bytes) {
    const std::size_t bytes = std::min(plan.chunk_bytes, data.size() - at);
    tickets.push_back(links.receive(parent, data.subspan(at, bytes)));
  }
  for (std::size_t at = 0, chunk = 0; at < data.size(); at += plan.chunk_bytes, ++chunk) {
    const std::size_t bytes = std::min(plan.chunk_bytes, data.size() - at);
    if (receives) await_received(links, parent, tickets[chunk]);
    for (const int child : place.children)
      links.send(wrapped(child + root, size), data.subspan(at, bytes));
  }
  finish(links);
}

void exchange(Links& links, std::span<const std::byte> from, std::span<const std::size_t> sent,
              std::span<std::byte> into, std::span<const std::size_t> received) {
  const int size = links.size();
  const int rank = links.rank();
  const auto members = static_cast<std::size_t>(size);
  DPWA_INVARIANT(sent.size() == members && received.size() == members, "a count of each member",
                 sent.size(), received.size(), size);
  DPWA_INVARIANT(total_of(sent) == from.size() && total_of(received) == into.size(),
                 "the counts are those of the bytes", from.size(), into.size());
  std::vector<std::size_t> sent_at(members), received_at(members);
  std::exclusive_scan(sent.begin(), sent.end(), sent_at.begin(), std::size_t{0});
  std::exclusive_scan(received.begin(), received.end(), received_at.begin(), std::size_t{0});
  const auto own = static_cast<std::size_t>(rank);
  DPWA_INVARIANT(sent[own] == received[own], "what a member sends to itself arrives", sent[own],
                 received[own]);
  for (int distance = 1; distance < size; ++distance) {
    const auto source = static_cast<std::size_t>(wrapped(rank - distance, size));
    const auto target = static_cast<std::size_t>(wrapped(rank + distance, size));
    links.receive(static_cast<int>(source), into.subspan(received_at[source], received[source]));
    links.send(static_cast<int>(target), from.subspan(sent_at[target], sent[target]));
  }
  copy(from.subspan(sent_at[own], sent[own]), into.data() + received_at[own]);
  finish(links);
}

// In each step a member hears of twice as many others (the dissemination barrier of Hensgen, Finkel
// and Manber, 1988).
void meet(Links& links) {
  const int size = links.size();
  constexpr std::array<std::byte, 1> here{};
  for (int distance = 1; distance < size; distance *= 2) {
    std::array<std::byte, 1> heard{};
    const int from = wrapped(links.rank() - distance, size);
    const Links::Ticket ticket = links.receive(from, heard);
    links.send(wrapped(links.rank() + distance, size), here);
    await_received(links, from, ticket);
  }
  finish(links);
}

}  // namespace dpwa::collectives
