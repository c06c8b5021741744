#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "dpwa/net/failure.h"
#include "dpwa/rules/peer_table.h"
#include "dpwa/rules/progress.h"
#include "dpwa/snapshot/byte_range.h"
#include "dpwa/wire/messages.h"
#include "interpolation/kernels/codec.h"

namespace dpwa {

// The request of one attempt at one peer.
struct PullRequest {
  bool full = false;
  ByteRange range;           // of the snapshot
  Codec codec = Codec::raw;  // wanted; raw instead when the peer does not understand it
  bool for_final_average = false;
  std::uint32_t deadline_ms = 0;  // stated to the peer
  bool unchecked_chunks = false;  // set by the channel: the peer wants no checksums either
  // The snapshot taken from it last: it need not send that again. Version 0 = none.
  std::uint64_t known_incarnation = 0;
  std::uint64_t known_version = 0;
  // To be stated to a peer that keeps a ledger, and to no other: see wire::Pull.
  std::optional<std::uint16_t> taken{};
};

// The result of one half of a pull: of ask(), which reads the head of the reply, or of land(),
// which reads the parameters.
struct PullResult {
  std::optional<PeerFailure> failure;  // none: the head is there, or the snapshot has landed
  std::string detail;                  // one line on the failure, for the log
  Progress progress;                   // the peer's, once its reply was read
  std::uint64_t bytes = 0;             // of parameters received, as they travelled
  std::uint64_t incarnation = 0;       // of the peer on this connection; 0 = it did not greet us
  std::optional<wire::RejectCode> reject;  // when it answered REJECT
  bool same_host = false;                  // it landed from the peer's memory, not over TCP
  // The parameters did not land, but another way to this peer is left: ask() again, at once.
  bool ask_again = false;
};

PullResult failed(PeerFailure failure, std::string detail);
PullResult failed(const net::Failure& failure);
// By the head of its reply.
PullResult not_wanted(PeerFailure why, const Progress& progress);
// A reply other than SNAPSHOT, in words.
PullResult declined(wire::MessageType type, std::span<const std::byte> body);

}  // namespace dpwa
