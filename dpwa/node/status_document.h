#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "dpwa/net/local_process.h"

namespace dpwa {

// The answer of a process to STATUS: one JSON object, described in docs/PROTOCOL.md. It has the
// name, the state and the connections of the process, then `fields`, those of its back end, then
// its notes. A later value replaces an earlier one of the same name.
std::string status_document(const LocalProcess& local, const nlohmann::ordered_json& fields);

}  // namespace dpwa
