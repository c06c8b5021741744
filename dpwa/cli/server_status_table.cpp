#include "dpwa/cli/server_status_table.h"

#include <ostream>

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

std::size_t size_of_list(const Json& document, const char* key) {
  const Json* list = list_in(document, key);
  return list != nullptr ? list->size() : 0;
}

std::string notes_on(const Json& document) {
  std::string text;
  const auto note = [&text](const std::string& what) { text += (text.empty() ? "" : ", ") + what; };
  const auto count = [&](const char* key, const char* what) {
    if (count_in(document, key) > 0) note(field_text(document, key) + ' ' + what);
  };
  if (const std::size_t waiting = size_of_list(document, "at_end"); waiting > 0)
    note(std::to_string(waiting) + " at the end");
  count("dropped", "dropped");
  count("not_finite", "not finite");
  count("protocol_errors", "errors");
  count("without_replica", "without replica");
  const Json& snapshot = object_in(document, "snapshot");
  if (count_in(snapshot, "failures") > 0)
    note(field_text(snapshot, "failures") + " snapshots not written");
  if (const std::string what = vain_wait_of(document); !what.empty()) note(what);
  return text;
}

}  // namespace

void print_server_table(const std::vector<NodeStatus>& servers, std::ostream& out) {
  const auto of_document = [](const auto& cell) {
    return [cell](const NodeStatus& server) { return cell(server.document); };
  };
  print_table("server",
              {text_column("state", "state"),
               {"workers", of_document([](const Json& document) {
                  return std::to_string(size_of_list(document, "workers"));
                })},
               text_column("step", "clock"),
               text_column("slices", "slices"),
               megabytes_column("MB", "bytes"),
               text_column("updates", "updates"),
               {"snapshot", of_document(snapshot_in)},
               {"notes", of_document(notes_on)}},
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
