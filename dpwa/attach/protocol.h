#pragma once

#include <chrono>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "dpwa/base/file_descriptor.h"
#include "dpwa/gossip/gossip_session.h"
#include "dpwa/rules/step_report.h"
#include "dpwa/snapshot/byte_range.h"
#include "dpwa/snapshot/landing.h"
#include "dpwa/snapshot/manifest.h"

// The protocol between a trainer and its node process: the name of their socket, and messages of
// ipc::MessageSocket. They are JSON, except for those of a step: there JSON would take a tenth of
// the time that the step of a small model takes. The manifest of the model is a frame (dpwa/wire/).
//
//   trainer                                    node process
//   {"do": "attach", "version": V, ...}    →   with the parameters' memory file
//                                          ←   {"state": ..., "version": V}, or {"error": "..."}
//   MANIFEST                               →
//                                          ←   {"state": ...}
//   {"do": "start"}, ...                   →   one at a time
//                                          ←   {"state": ..., what was asked for}
//   StepRequest                            →
//                                          ←   StepAnswer, or {"error": "..."}
// A trainer in any language speaks JSON alone (docs/PROTOCOL.md): {"do": "attach", "protocol": 1,
// "tensors": ...} is answered with memory of the node process, and steps are {"do": "send"} and
// {"do": "wait"}.
// A trainer whose parameters are on a device sends no memory file, and how many copies of them may
// be under way at once ("copies", 0: in host memory). While it waits for an answer, the node
// process may ask it for passes:
//                                          ←   PassRequest, with a memory file where it says so
//   PassAnswer                             →
// A step is "send", then "wait", whose answer has the report of the step. The answer to a "send"
// that leaves nothing to wait for has it already, and no "wait" follows.
namespace dpwa::attach {

// The version of this protocol, which must be the same at both ends. Version 1 did not send its
// number.
inline constexpr int protocol_version = 8;
// That of JSON alone, which is documented, and does not change with the release.
inline constexpr int plain_version = 1;
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

nlohmann::json to_json(const FinishReport& report);
nlohmann::json to_json(const StepReport& report);
nlohmann::json to_json(const GossipState& state);

// Throw nlohmann::json::exception when something is missing or of another type.
Manifest manifest_in(const nlohmann::json& tensors);  // and std::invalid_argument
FinishReport finish_report_in(const nlohmann::json& text);
GossipState resume_state_in(const nlohmann::json& text);

// One half of a step.
struct StepRequest {
  enum class Half : char { send = 's', wait = 'w' };
  Half half = Half::send;
  std::optional<double> loss;  // none: the last one; from a device: it is asked for
};

struct StepAnswer {
  GossipState state;
  std::optional<StepReport> report;  // none: it is waited for
};

// Of a trainer with parameters on a device: a pass over them, or what passes need.
struct PassRequest {
  enum class Kind : char {
    memory = 'm',    // maps memory of range.length bytes; its number is how many came before
    release = 'r',   // unmaps one
    copy_out = 'c',  // the calls of Parameters, on one
    fetch = 'f',
    blend = 'b',
    assign = 'a',
    fetched = 'd',  // the value is what the call returns: 0, 1 or a number
    settled = 's',
    unfinished_copies = 'u',
    landing_is_free = 'n',
    loss = 'l',  // the value is that of the n-th "send"
  };
  Kind kind = Kind::settled;
  std::uint64_t memory = 0;  // its number
  ByteRange range{};         // what has landed
  LandingMode mode = LandingMode::difference;
  double factor = 0;
  std::uint64_t send = 0;
};

struct PassAnswer {
  double value = 0;
  std::string error;  // empty: it is made, or queued on the device
};

// How long to poll for its answer before sleeping.
inline constexpr auto pass_within = std::chrono::microseconds(200);

std::string encode(const PassRequest& request);
std::string encode(const PassAnswer& answer);
std::optional<PassRequest> pass_request_in(std::string_view message);
std::optional<PassAnswer> pass_answer_in(std::string_view message);

std::string encode(const StepRequest& request);
std::string encode(const StepAnswer& answer);
// None when the message is another one.
std::optional<StepRequest> step_request_in(std::string_view message);
std::optional<StepAnswer> step_answer_in(std::string_view message);

}  // namespace dpwa::attach
