#include "dpwa/node/status_document.h"

#include <nlohmann/json.hpp>
#include <string_view>

#include "dpwa/base/version.h"
#include "dpwa/wire/messages.h"

namespace dpwa {
namespace {

std::string_view name_of(wire::NodeState state) {
  switch (state) {
    case wire::NodeState::joining:
      return "joining";
    case wire::NodeState::ready:
      return "training";
    case wire::NodeState::finished:
      return "finished";
  }
  return "unknown";
}

}  // namespace

std::string status_document(const LocalProcess& local, const nlohmann::ordered_json& fields) {
  nlohmann::ordered_json out;
  out["schema"] = 1;
  out["version"] = version();
  out["cluster"] = local.cluster;
  out["node"] = local.name;
  out["incarnation"] = local.incarnation;
  out["state"] = name_of(local.state.load());
  const Traffic& traffic = local.traffic;
  out["connections_accepted"] = traffic.connections_accepted.load();
  out["connections_refused"] = traffic.connections_refused.load();
  out["protocol_errors"] = traffic.protocol_errors.load();
  out["security_failures"] = traffic.security_failures.load();
  out.update(fields);
  for (const auto& [key, json] : local.notes.all()) out[key] = nlohmann::ordered_json::parse(json);
  return out.dump();
}

}  // namespace dpwa
