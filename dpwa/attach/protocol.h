#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "dpwa/base/file_descriptor.h"
#include "dpwa/gossip/gossip_session.h"
#include "dpwa/rules/step_report.h"

// The protocol between a trainer and its node process: the name of their socket, and JSON in
// messages of ipc::MessageSocket. The manifest of the model is a frame (dpwa/wire/).
//
//   trainer                                    node process
//   {"do": "attach", "version": 2, ...}    →   with the parameters' memory file
//                                          ←   {"state": ..., "version": 2}, or {"error": "..."}
//   MANIFEST                               →
//                                          ←   {"state": ...}
//   {"do": "start"}, {"do": "send"}, ...   →   one at a time
//                                          ←   {"state": ..., what was asked for}
// A step is "send", then "wait", which has the "report" of the step. The answer to a "send" that
// has blended has it already, and no "wait" follows.
namespace dpwa::attach {

// The version of this protocol, which must be the same at both ends. Version 1 did not send its
// number.
inline constexpr int protocol_version = 3;
// One line that names both versions when they differ, else empty. `message` is the first message of
// the other end.
std::string version_problem(const nlohmann::json& message, const std::string& other_end);

// The name under which the node process of this node listens, for this user on this host. It
// includes the port, so that two clusters with the same name can run side by side.
std::string socket_name(const std::string& cluster, const std::string& node, std::uint16_t port);
// Listens under that name. Throws std::runtime_error with the reason when it cannot, such as a node
// process that runs already.
FileDescriptor listen_for_trainers(const std::string& name);

// Numbers that are not finite are null.

nlohmann::json number(double value);
double number_in(const nlohmann::json& value);  // null: not a number

nlohmann::json to_json(const StepReport& report);
nlohmann::json to_json(const FinishReport& report);
nlohmann::json to_json(const GossipState& state);

// Throw nlohmann::json::exception when something is missing or of another type.
StepReport step_report_in(const nlohmann::json& text);
FinishReport finish_report_in(const nlohmann::json& text);
GossipState resume_state_in(const nlohmann::json& text);

}  // namespace dpwa::attach
