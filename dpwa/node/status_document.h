#pragma once

#include <string>

#include "dpwa/core/peer_table.h"
#include "dpwa/net/local_node.h"

namespace dpwa {

// A node's answer to STATUS: one JSON object, described in docs/PROTOCOL.md. Numbers that are not
// finite are null. Called on the thread that owns `table`.
std::string status_document(const LocalNode& local, const PeerTable& table, TimePoint now);

}  // namespace dpwa
