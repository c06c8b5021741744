#pragma once

#include <functional>
#include <string>

#include "dpwa/config/config.h"
#include "dpwa/net/local_node.h"
#include "dpwa/rules/firewall.h"
#include "dpwa/rules/pair_ledger.h"
#include "dpwa/rules/peer_table.h"

namespace dpwa {

// A node's answer to STATUS: one JSON object, described in docs/PROTOCOL.md. Numbers that are not
// finite are null. `ledger`: null when none is kept. `same_host`: whether pulls from a peer go
// through its memory. Called on the thread that owns `table`.
std::string status_document(const LocalNode& local, const PeerTable& table,
                            const Firewall& firewall, const PairLedger* ledger,
                            const std::function<bool(PeerId)>& same_host, TimePoint now);

// The document of a node process that has no trainer: state "waiting".
std::string waiting_status_document(const Config& config);

}  // namespace dpwa
