#include "bench/train/published_versions.h"

#include "adapters/gossip/gossip_adapter.h"
#include "dpwa/gossip/gossip.h"
#include "dpwa/gossip/gossip_node.h"

namespace dpwa::bench {

std::uint64_t published_versions(Adapter& adapter) {
  auto* gossip = dynamic_cast<GossipAdapter*>(&adapter);
  if (gossip == nullptr) return 0;
  return gossip->gossip().node().local().store.latest()->progress().version;
}

}  // namespace dpwa::bench
