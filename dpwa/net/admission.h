#pragma once

#include <optional>

#include "dpwa/net/local_node.h"
#include "dpwa/wire/messages.h"

namespace dpwa {

// Whether a caller may speak to this node, by its HELLO alone: the reject to answer with, or none.
// The fingerprint is not looked at: when it differs, the manifest tells which tensor to name. Pure.
std::optional<wire::Reject> examine_hello(const wire::Hello& hello, const LocalNode& local);

// The reject for a caller whose model differs; with that model, `there`, naming the first tensor.
wire::Reject model_reject(const LocalNode& local, const std::string& caller);
wire::Reject model_reject(const LocalNode& local, const std::string& caller, const Manifest& there);

}  // namespace dpwa
