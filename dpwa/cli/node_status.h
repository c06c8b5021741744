#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <span>
#include <string>
#include <vector>

#include "dpwa/config/config.h"
#include "dpwa/observe/node_status.h"

namespace dpwa::cli {

using namespace observe;

// What is unusual about a process: "3 errors, waits for w2"; empty: nothing.
struct Notes {
  std::string text;

  void add(const std::string& note);
  void count(std::uint64_t number, const char* what);  // nothing where it is 0
};

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
