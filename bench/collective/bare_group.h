#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "adapters/collective/engine/process_group.h"

namespace dpwa::bench {

// A group of processes of this machine on one engine, without any node: what the back end stands
// on.
struct BareGroup {
  std::shared_ptr<const collective::Engine> engine;
  std::unique_ptr<collective::ProcessGroup> members;
};

// Rank 0 hosts the rendezvous at `port` of loopback. Throws collective::CollectiveError.
BareGroup form_bare_group(const std::string& engine, int rank, int size, std::uint16_t port);

}  // namespace dpwa::bench
