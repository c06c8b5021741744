#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dpwa/config/config.h"

namespace dpwa {

// A back end that a cluster file may name, and whether this build has it.
struct BackendInfo {
  Backend backend;
  std::string_view absent;  // why this build lacks it; empty: it has it
};

// All back ends, in the order of enum Backend.
std::span<const BackendInfo> backends();

const BackendInfo& backend_info(Backend backend);

// The back ends of this build, and the same as "gossip, null".
std::vector<std::string> available_names();
std::string available_backends();

// Throws ConfigError, in one line with the reason, when this build lacks the back end or its
// engine, or when the back end does not support a setting. Loading a file does not check this.
void require_backend(const Config& config);

// The same for a process `dpwa kvserver`, which every build has: throws when the file has no
// servers to run.
void require_servers(const Config& config);

// Throws ConfigError when gradients would travel unencrypted although the file asks for encryption.
void require_plaintext_allowed(const Config& config);
// Throws ConfigError when some nodes have an IPv4 address and some an IPv6 address, and the engine
// cannot connect them.
void require_one_family(const Config& config);

}  // namespace dpwa
