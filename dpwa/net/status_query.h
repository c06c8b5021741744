#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dpwa/base/time.h"
#include "dpwa/net/peer_address.h"
#include "dpwa/wire/messages.h"

namespace dpwa {

class Security;

// The answer of one node to STATUS_REQUEST.
struct StatusAnswer {
  std::string name;             // of the node, as the cluster file has it
  std::string json;             // its status document; empty when it did not answer
  std::string error;            // why it did not: one line
  bool nobody_listens = false;  // as net::Failure has it
  bool connected = false;       // the system at the address took the connection
  // Of this process, between question and answer, which took so long.
  std::int64_t middle_us = 0;
  Duration round_trip{};
};

// Asks every node at once, as an observer of `cluster`, each under `timeout`. One answer per node,
// in order; a node that does not answer is an answer with an error. Blocks; no threads.
// `security`: of the cluster, or null.
std::vector<StatusAnswer> query_status(const std::string& cluster,
                                       const std::vector<PeerAddress>& nodes, Duration timeout,
                                       const Security* security = nullptr);
// The same for TRACE_REQUEST: a question to each node.
std::vector<StatusAnswer> query_traces(const std::string& cluster,
                                       const std::vector<PeerAddress>& nodes,
                                       const std::vector<wire::TraceRequest>& requests,
                                       Duration timeout, const Security* security);

}  // namespace dpwa
