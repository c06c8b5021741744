#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "dpwa/net/status_query.h"

namespace dpwa::observe {

using Json = nlohmann::ordered_json;

// The state of one node as a program knows it that asks the nodes of a cluster.
struct NodeStatus {
  std::string name;
  std::string address;  // HOST:PORT
  std::string member;   // its state as the others see it: alive, suspect, dead, left; "-": unknown
  std::string error;    // why it did not answer; empty: it did
  Json document;        // its answer; an object
  bool joined = false;  // it is not in the cluster file
  bool nobody_listens = false;  // as StatusAnswer has them
  bool connected = false;
  PeerAddress place{};
  std::vector<double> sketch{};  // of its model (ModelSketch); empty: none
};

// The document of a node is data from the network: a value that is missing or of another type has
// the text "-".
std::string raw_text(const Json& document, const char* key);
// For display: characters that could control a terminal or imitate another row are replaced.
// Numbers get `decimals` decimals; -1: as they arrived.
std::string field_text(const Json& document, const char* key, int decimals = -1);

// The same of other types: 0, an empty object, false, null where there is none of that type. Null
// has no elements.
std::uint64_t count_in(const Json& document, const char* key);
const Json& object_in(const Json& document, const char* key);
bool flag_in(const Json& document, const char* key);
const Json& list_in(const Json& document, const char* key);
// The texts of a list for display: "a, b".
std::string names_in(const Json& document, const char* key);

// A number of bytes in megabytes, with a decimal where it is small.
std::string megabytes(const Json& document, const char* key);

// An empty object when the answer is not a document, or is nested so deeply that copying it would
// exhaust the stack.
Json parse_status(const StatusAnswer& answer);

// Why there is no document of this node: "no answer: Connection refused", "no answer in time", or
// "answers as 'w2'" when another node is at its address; empty when the document is its own.
std::string absence_of(const NodeStatus& node);

// The name of another node that answers at the address; empty: there is none.
std::string other_name(const NodeStatus& node);

// The members in all documents, by name: the entry that calls the member alive, or else the most
// serious one.
std::map<std::string, Json> members_in(const std::vector<NodeStatus>& nodes);

}  // namespace dpwa::observe
