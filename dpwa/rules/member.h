#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "dpwa/base/time.h"

namespace dpwa {

// The status of a node of the cluster. The values travel on the wire and order the claims of one
// process: never renumber them.
enum class MemberStatus : std::uint8_t {
  alive = 1,
  suspect = 2,  // several pulls in a row brought no answer
  dead = 3,     // suspect for a while, and nobody has refuted it
  left = 4,     // it said so itself
};

constexpr std::string_view to_string(MemberStatus status) {
  switch (status) {
    case MemberStatus::alive:
      return "alive";
    case MemberStatus::suspect:
      return "suspect";
    case MemberStatus::dead:
      return "dead";
    case MemberStatus::left:
      return "left";
  }
  return "unknown";
}

constexpr bool runs(MemberStatus status) {
  return status == MemberStatus::alive || status == MemberStatus::suspect;
}

// The statement of one node about another, or about itself.
struct MemberClaim {
  std::string name;
  std::vector<std::string> addresses;  // numeric, in the order to dial
  std::uint16_t port = 0;
  std::uint64_t incarnation = 0;  // of the process; 0 = never heard of
  std::uint32_t refutation = 0;   // raised by the process itself, to refute claims about it
  MemberStatus status = MemberStatus::alive;

  bool operator==(const MemberClaim&) const = default;
};

struct Member {
  MemberClaim claim;    // an empty name: a free place
  bool listed = false;  // in the cluster file: never forgotten, and its address stays
  TimePoint heard = TimePoint::min();      // last sign of life that came to this node itself
  TimePoint changed = TimePoint::min();    // since when `claim` is held
  TimePoint exchanged = TimePoint::min();  // the last exchange that this node began with it
  bool reached = false;                    // it has answered this node at the address held here
  bool met = false;                        // it has answered this node, wherever
  bool answers = false;                    // the same of the last time that it was asked
  bool told = false;                       // its process has told this node itself where it listens
  std::uint64_t replaced = 0;  // the process that it has replaced by its own word; 0: none
  std::string told_by;  // the member that told of it first; empty: itself, or it was met since
  // The last statement of that process about itself, or the first that was heard of it.
  std::uint32_t known_refutation = 0;
  TimePoint known = TimePoint::min();    // since when
  unsigned failures = 0;                 // in a row
  TimePoint meet_at = TimePoint::min();  // not asked before, while only others vouch for it
  unsigned refutations = 0;              // of suspicions by this node, that were wrong

  // The status to act on: what this node observed itself counts more than claims.
  MemberStatus status() const { return heard > changed ? MemberStatus::alive : claim.status; }
  // Known from more than the reports of others, which may invent names: a node to pull from and to
  // count.
  bool vouched_for() const { return listed || reached; }
};

// The message from one node to another: news, and, while their tables differ, parts of them.
struct MemberExchange {
  std::uint32_t total = 0;          // in the sender's table, itself included
  std::uint64_t digest = 0;         // of the processes that it holds to run, itself included
  std::uint32_t part = 0;           // which part of the other's table it wants, should they differ
  std::vector<MemberClaim> claims;  // the sender's of itself first
};

// Whether `claim` is news to a node that holds `held` of the same name: the later process wins,
// then the later refutation, then the graver status (SWIM: Das, Gupta, Motivala 2002). This is a
// total order of claims, so nodes that have heard the same claims hold the same one, in whatever
// order they arrived.
bool supersedes(const MemberClaim& claim, const MemberClaim& held);

// A member's part of the digest of a table. The digest is the exclusive or of these parts, so it is
// the same for two tables with the same running processes. Not cryptographic.
std::uint64_t digest_of(const MemberClaim& claim);

// The members of which there is something to tell, by their places in the table. Each is told a
// bounded number of times, those told least first, so that fresh news is not held up by old (SWIM,
// section 4.1). At most one entry a member. Pure; one owner, one thread.
class MemberNews {
 public:
  void add(std::size_t member);  // afresh: its count begins at 0
  void remove(std::size_t member);
  // Up to `most` members, told once more now; those told `limit` times are dropped.
  std::vector<std::size_t> take(std::size_t most, unsigned limit);
  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }

  // How often news is told among `nodes` nodes: so often that all but a few hear of it.
  static unsigned limit(std::size_t nodes);

 private:
  static constexpr unsigned nothing = ~0U;

  std::vector<unsigned> told_;  // times, by member; `nothing`: there is nothing to tell
  std::size_t size_ = 0;
};

}  // namespace dpwa
