#pragma once

#include <iosfwd>
#include <span>
#include <string>
#include <vector>

#include "dpwa/cli/node_status.h"

namespace dpwa::cli {

// The servers of backend kvstore, as `dpwa status` shows them.
void print_server_table(const std::vector<NodeStatus>& servers, std::ostream& out);

// A line for each server that does not answer or cannot serve its share.
std::vector<std::string> server_problems(std::span<const NodeStatus> servers);

}  // namespace dpwa::cli
