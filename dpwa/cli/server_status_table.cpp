#include "dpwa/cli/server_status_table.h"

#include <cstdio>
#include <ostream>

#include "dpwa/base/plain_text.h"
#include "dpwa/cli/text_table.h"
#include "dpwa/wire/messages.h"

namespace dpwa::cli {
namespace {

std::uint64_t number_in(const Json& document, const char* key) {
  const auto found = document.find(key);
  return found != document.end() && found->is_number_unsigned() ? found->get<std::uint64_t>() : 0;
}

std::string millions(const Json& document, const char* key) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", static_cast<double>(number_in(document, key)) / 1e6);
  return text;
}

std::string names_in(const Json& document, const char* key) {
  std::string names;
  const auto found = document.find(key);
  if (found == document.end() || !found->is_array()) return names;
  for (const Json& name : *found) {
    if (!name.is_string()) continue;
    names += names.empty() ? "" : ", ";
    names += to_plain_text(name.get_ref<const std::string&>(), wire::max_name_bytes);
  }
  return names;
}

// What the server waits for, and may wait for in vain.
std::string vain_wait_of(const Json& document) {
  if (const std::string names = names_in(document, "lost"); !names.empty())
    return "cannot continue, because the values of " + names + " are lost";
  if (const std::string names = names_in(document, "missing"); !names.empty())
    return "waits for " + names;
  const std::string names = names_in(document, "undecided");
  return names.empty() ? "" : "cannot change the members without the vote of " + names;
}

// Null: the server writes none.
const Json* status_of_snapshots(const Json& document) {
  const auto found = document.find("snapshot");
  return found != document.end() && found->is_object() ? &*found : nullptr;
}

// Number and age of the last one that all servers have.
std::string snapshot_in(const Json& document) {
  const Json* snapshot = status_of_snapshots(document);
  if (snapshot == nullptr) return "-";
  if (number_in(*snapshot, "number") == 0) return "none";
  const auto age = snapshot->find("age_s");
  if (age == snapshot->end() || !age->is_number()) return field_text(*snapshot, "number");
  char text[48];
  std::snprintf(text, sizeof text, " (%.0f s)", age->get<double>());
  return field_text(*snapshot, "number") + text;
}

std::size_t size_of_list(const Json& document, const char* key) {
  const auto found = document.find(key);
  return found != document.end() && found->is_array() ? found->size() : 0;
}

std::string notes_on(const Json& document) {
  std::string text;
  const auto note = [&text](const std::string& what) { text += (text.empty() ? "" : ", ") + what; };
  const auto count = [&](const char* key, const char* what) {
    if (number_in(document, key) > 0) note(field_text(document, key) + ' ' + what);
  };
  if (const std::size_t waiting = size_of_list(document, "at_end"); waiting > 0)
    note(std::to_string(waiting) + " at the end");
  count("late", "late");
  count("not_finite", "not finite");
  count("protocol_errors", "errors");
  count("without_replica", "without replica");
  if (const auto snapshot = status_of_snapshots(document); snapshot != nullptr) {
    if (number_in(*snapshot, "failures") > 0) {
      note(field_text(*snapshot, "failures") + " snapshots not written");
    }
  }
  if (const std::string what = vain_wait_of(document); !what.empty()) note(what);
  return text;
}

}  // namespace

void print_server_table(const std::vector<NodeStatus>& servers, std::ostream& out) {
  TextTable table(
      {"server", "state", "workers", "step", "slices", "MB", "updates", "snapshot", "notes"},
      status_width);
  for (const NodeStatus& server : servers) {
    if (!absence_of(server).empty()) {
      table.add(absent_row(server));
      continue;
    }
    const Json& status = server.document;
    table.add({server.name, field_text(status, "state"),
               std::to_string(size_of_list(status, "workers")), field_text(status, "clock"),
               field_text(status, "slices"), millions(status, "bytes"),
               field_text(status, "updates"), snapshot_in(status), notes_on(status)});
  }
  table.print(out);
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
    const std::uint64_t bound = number_in(server.document, "memory_bytes");
    if (problem.empty() && bound > 0 && number_in(server.document, "bytes") > bound)
      problem = "holds " + millions(server.document, "bytes") +
                " MB, with replicas more than its " + millions(server.document, "memory_bytes") +
                " MB (kvstore.memory_bytes)";
    const Json* snapshot = status_of_snapshots(server.document);
    if (problem.empty() && snapshot != nullptr && snapshot->contains("failing") &&
        snapshot->at("failing") == true)
      problem = "the last part of a snapshot was not written";
    if (!problem.empty()) problems.push_back("server " + server.name + ": " + problem);
  }
  return problems;
}

}  // namespace dpwa::cli
