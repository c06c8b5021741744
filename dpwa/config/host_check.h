#pragma once

#include <optional>
#include <string>
#include <vector>

#include "dpwa/config/config.h"

namespace dpwa {

// Checks that this host can run a node as the file describes it. Loading does not check this,
// because the file may be meant for other hosts. Throws ConfigError.
void check_host(const Config& config);

// Why this host cannot use transport.congestion_control, as "FILE:LINE: key: ..."; none: it can.
std::optional<std::string> congestion_control_problem(const Config& config);

namespace config {

// The error text for a congestion control that the kernel refused. `error` comes from setsockopt;
// `available` and `allowed` are the lists of the kernel. Pure.
std::string congestion_control_refusal(const std::string& name, int error,
                                       const std::vector<std::string>& available,
                                       const std::vector<std::string>& allowed);

}  // namespace config
}  // namespace dpwa
