#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "dpwa/config/config.h"
#include "dpwa/net/status_query.h"

namespace dpwa::cli {

using Json = nlohmann::ordered_json;

// The state of one node as dpwa status knows it.
struct NodeStatus {
  std::string name;
  std::string address;  // HOST:PORT
  std::string member;   // its state as the others see it: alive, suspect, dead, left; "-": unknown
  std::string error;    // why it did not answer; empty: it did
  Json document;        // its answer; an object
  bool joined = false;  // it is not in the cluster file
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
// Of a number of bytes, with a decimal where it is small.
std::string megabytes(const Json& document, const char* key);

// What is unusual about a process: "3 errors, waits for w2"; empty: nothing.
struct Notes {
  std::string text;

  void add(const std::string& note);
  void count(std::uint64_t number, const char* what);  // nothing where it is 0
};

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

// The width of the tables, while names have at most eight characters.
inline constexpr std::size_t status_width = 80;

struct Column {
  std::string head;
  std::function<std::string(const NodeStatus&)> cell;
};
// Of a value of the document, or of an object in it.
Column text_column(const char* head, const char* key, int decimals = -1, const char* object = "");
Column megabytes_column(const char* head, const char* key, const char* object = "");

// A row for each process, which begins with its name. That of a process without a document says
// why, and where it was asked. `kind`: the head of the names.
void print_table(const char* kind, const std::vector<Column>& columns,
                 const std::vector<NodeStatus>& processes, std::ostream& out);

// One row for each node. Unusual things come last. The columns are those of the back end that the
// nodes state, or `of_file` when none answers.
void print_status_table(const std::vector<NodeStatus>& nodes, std::ostream& out,
                        Backend of_file = Backend::gossip);

// One line for each of these nodes that is missing or failing, such as "w2: no answer: Connection
// refused". Pure.
std::vector<std::string> status_problems(std::span<const NodeStatus> nodes);

// The same of the servers of backend kvstore.
void print_server_table(const std::vector<NodeStatus>& servers, std::ostream& out);
// A line for each server that does not answer or cannot serve its share.
std::vector<std::string> server_problems(std::span<const NodeStatus> servers);

}  // namespace dpwa::cli
