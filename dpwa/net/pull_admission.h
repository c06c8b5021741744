#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "dpwa/net/local_node.h"
#include "dpwa/wire/messages.h"

namespace dpwa {

// What a PULL is to be given: bytes `range` of a snapshot, which stays as it is while held.
struct PullGrant {
  std::shared_ptr<const Snapshot> snapshot;
  wire::NodeState state = wire::NodeState::ready;  // of this node
  ByteRange range;
};

// Why it is given nothing, on a connection that stays.
struct PullRefusal {
  wire::MessageType type = wire::MessageType::error;  // NOT_READY, NOT_MODIFIED, BUSY or ERROR
  std::string reason;                                 // of ERROR
};

// The answer to a PULL, however the parameters travel. `busy`: as many replies as allowed are under
// way. Any thread.
std::variant<PullGrant, PullRefusal> examine_pull(const wire::Pull& pull, const LocalNode& local,
                                                  bool busy);

std::vector<std::byte> encode(const PullRefusal& refusal, std::uint32_t request_id);

}  // namespace dpwa
