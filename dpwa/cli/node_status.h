#pragma once

#include <iosfwd>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "dpwa/net/status_query.h"

namespace dpwa::cli {

using Json = nlohmann::ordered_json;

// What dpwa status knows of one node.
struct NodeStatus {
  std::string name;
  std::string address;  // HOST:PORT
  std::string member;   // what the others hold it to be: alive, suspect, dead, left; "-": nothing
  std::string error;    // why it did not answer; empty: it did
  Json document;        // its answer; an object
};

// A node's document is data from the network: whatever is missing or of another type is "-".
std::string raw_text(const Json& document, const char* key);
// To be shown: what could steer a terminal, or feign another row, is replaced. Numbers with so many
// decimals; -1: as they came.
std::string field_text(const Json& document, const char* key, int decimals = -1);

// A document nested so deeply that copying it would use up the stack is none: an empty object.
Json parse_status(const StatusAnswer& answer);

// Why there is nothing to be shown of the node: "no answer: Connection refused", or "answers as
// 'w2'" when the one at its address is another; empty: its document is its own.
std::string absence_of(const NodeStatus& node);

// The name by which another node answers at the address; empty: none does.
std::string other_name(const NodeStatus& node);

// What the answers say of each member, by name: its entry where it is held alive, else the gravest.
std::map<std::string, Json> members_in(const std::vector<StatusAnswer>& answers);

// One row a node; about 110 columns wide with short names, whatever is unusual last.
void print_status_table(const std::vector<NodeStatus>& nodes, std::ostream& out);

// One line for each of these nodes that is missing or failing, such as "w2: no answer: Connection
// refused". Pure.
std::vector<std::string> status_problems(std::span<const NodeStatus> nodes);

}  // namespace dpwa::cli
