#include <ostream>

#include "dpwa/cli/node_status.h"

namespace dpwa::cli {
namespace {

// What the server waits for, and may wait for in vain.
std::string vain_wait_of(const Json& document) {
  if (const std::string names = names_in(document, "lost"); !names.empty())
    return "cannot continue, because the values of " + names + " are lost";
  if (const std::string names = names_in(document, "missing"); !names.empty())
    return "waits for " + names;
  const std::string names = names_in(document, "undecided");
  return names.empty() ? "" : "cannot change the members without the vote of " + names;
}

// Number and age of the last one that all servers have.
std::string snapshot_in(const Json& document) {
  const Json& snapshot = object_in(document, "snapshot");
  if (snapshot.empty()) return "-";
  if (count_in(snapshot, "number") == 0) return "none";
  const std::string number = field_text(snapshot, "number");
  const std::string age = field_text(snapshot, "age_s", 0);
  return age == "-" ? number : number + " (" + age + " s)";
}

std::string notes_on_server(const Json& document) {
  Notes notes;
  notes.count(list_in(document, "at_end").size(), "at the end");
  notes.count(count_in(document, "dropped"), "dropped");
  notes.count(count_in(document, "not_finite"), "not finite");
  notes.count(count_in(document, "protocol_errors"), "errors");
  notes.count(count_in(document, "without_replica"), "without replica");
  notes.count(count_in(object_in(document, "snapshot"), "failures"), "snapshots not written");
  if (const std::string what = vain_wait_of(document); !what.empty()) notes.add(what);
  return notes.text;
}

}  // namespace

void print_server_table(const std::vector<NodeStatus>& servers, std::ostream& out) {
  const auto of_document = [](const auto& cell) {
    return [cell](const NodeStatus& server) { return cell(server.document); };
  };
  print_table("server",
              {text_column("state", "state"),
               {"workers", of_document([](const Json& document) {
                  return std::to_string(list_in(document, "workers").size());
                })},
               text_column("step", "clock"),
               text_column("slices", "slices"),
               megabytes_column("MB", "bytes"),
               text_column("updates", "updates"),
               {"snapshot", of_document(snapshot_in)},
               {"notes", of_document(notes_on_server)}},
              servers, out);
}

std::vector<std::string> server_problems(std::span<const NodeStatus> servers) {
  std::vector<std::string> problems;
  for (const NodeStatus& server : servers) {
    std::string problem = absence_of(server);
    if (problem.empty() && names_in(server.document, "lost").empty() &&
        raw_text(server.document, "state") != "up") {
      problem = "is " + field_text(server.document, "state");
    }
    if (problem.empty()) problem = vain_wait_of(server.document);
    const std::uint64_t bound = count_in(server.document, "memory_bytes");
    if (problem.empty() && bound > 0 && count_in(server.document, "bytes") > bound)
      problem = "holds " + megabytes(server.document, "bytes") +
                " MB, with replicas more than its " + megabytes(server.document, "memory_bytes") +
                " MB (kvstore.memory_bytes)";
    if (problem.empty() && flag_in(object_in(server.document, "snapshot"), "failing"))
      problem = "the last part of a snapshot was not written";
    if (!problem.empty()) problems.push_back("server " + server.name + ": " + problem);
  }
  return problems;
}

}  // namespace dpwa::cli
