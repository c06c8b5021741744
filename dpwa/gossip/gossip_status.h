#pragma once

#include <functional>
#include <string>

#include "dpwa/net/local_node.h"
#include "dpwa/rules/firewall.h"
#include "dpwa/rules/model_sketch.h"
#include "dpwa/rules/pair_ledger.h"
#include "dpwa/rules/peer_table.h"

namespace dpwa {

// The answer of a node that trains by gossip averaging to STATUS. Numbers that are not finite are
// null. `ledger`: null when none is kept. `same_host`: whether pulls from a peer go through its
// memory. `sketch`: of a recent snapshot; null: none. Called on the thread that owns `table`.
std::string gossip_status(const LocalNode& local, const PeerTable& table, const Firewall& firewall,
                          const PairLedger* ledger, const std::function<bool(PeerId)>& same_host,
                          const ModelSketch* sketch, TimePoint now);

}  // namespace dpwa
