#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "dpwa/base/time.h"
#include "dpwa/rules/listing.h"
#include "dpwa/rules/member.h"
#include "dpwa/rules/peer_table.h"

namespace dpwa {

// The answer of one node to a greeting, and its entry in the member table.
struct PeerAnswer {
  bool asked = false;
  std::optional<PeerFailure> failure;
  std::string detail;         // one line on the failure
  bool refuses_name = false;  // it says that the name of this node is another's
  // Its answer; only without a failure:
  bool joining = true;  // it has not made its first step
  bool finished = false;
  std::uint64_t lineage = 0;  // 0 = no common weights yet
  double clock = 0;
  // The entry of its place in the table:
  std::string name;  // empty: a free place
  bool listed = false;
  bool vouched_for = false;  // Member::vouched_for()
  MemberStatus status = MemberStatus::alive;
};

// The start and the final average greet every node repeatedly. From this many nodes on, the node
// logs that this takes a long time.
inline constexpr std::size_t many_nodes = 256;

// From one greeting of all `nodes` to the next: `pause` among up to 64, and longer in proportion
// among more, so that the greetings that each node answers a second do not grow with the cluster.
constexpr Duration paced(Duration pause, std::size_t nodes) {
  return pause * static_cast<Duration::rep>(nodes > 64 ? (nodes + 63) / 64 : 1);
}

// A node and its place among the nodes of its cluster file. The start and the end of a node use it.
struct NodePlace {
  std::string name;
  std::size_t position = 0;    // number of nodes of the cluster file before this one
  std::size_t file_peers = 0;  // other nodes of the file; they come first among the peers
  Listing listing = Listing::listed;
};

}  // namespace dpwa
