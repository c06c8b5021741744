#include "dpwa/net/pull_admission.h"

#include <algorithm>
#include <utility>

#include "dpwa/snapshot/encoded_chunk.h"

namespace dpwa {

using wire::MessageType;

std::variant<PullGrant, PullRefusal> examine_pull(const wire::Pull& pull, const LocalNode& local,
                                                  bool busy) {
  auto snapshot = local.store.latest();
  const auto state = local.state.load();
  if (snapshot == nullptr) return PullRefusal{MessageType::not_ready, {}};
  // One that has not begun gives the weights that it will begin with, to be taken over.
  const bool begins_with_them = pull.full && snapshot->progress().lineage != 0;
  if (state == wire::NodeState::joining && !begins_with_them)
    return PullRefusal{MessageType::not_ready, {}};
  if (local.dormant.load() && !pull.full) return PullRefusal{MessageType::not_ready, {}};
  if (pull.known_version != 0 && pull.known_version == snapshot->progress().version)
    return PullRefusal{MessageType::not_modified, {}};
  if (busy) return PullRefusal{MessageType::busy, {}};

  const std::uint64_t available =
      pull.full ? local.manifest.total_bytes() : local.manifest.exchange_bytes();
  const std::uint64_t length =
      pull.length != 0 ? pull.length : available - std::min(pull.offset, available);
  if (pull.offset % 64 != 0 || pull.offset > available || length > available - pull.offset) {
    return PullRefusal{MessageType::error, "the range " + std::to_string(pull.offset) + "+" +
                                               std::to_string(length) + " is not within " +
                                               std::to_string(available) +
                                               " bytes or does not begin on a multiple of 64"};
  }
  const ByteRange range{pull.offset, length};
  if (!holds_whole_elements(local.manifest, pull.codec, range)) {
    return PullRefusal{MessageType::error, "the range " + std::to_string(pull.offset) + "+" +
                                               std::to_string(length) +
                                               " ends within an element, which cannot be encoded"};
  }
  return PullGrant{std::move(snapshot), state, range};
}

std::vector<std::byte> encode(const PullRefusal& refusal, std::uint32_t request_id) {
  if (refusal.type == MessageType::error)
    return wire::encode(wire::Error{refusal.reason}, request_id);
  return wire::encode_empty(refusal.type, request_id);
}

}  // namespace dpwa
