#pragma once

#include <span>
#include <string>
#include <string_view>

#include "dpwa/config/config.h"

namespace dpwa {

// A back end that a cluster file may name, and whether this build has it.
struct BackendInfo {
  Backend backend;
  std::string_view name;    // in the cluster file
  std::string_view absent;  // why this build lacks it; empty: it has it
};

// All of them, in the order of enum Backend.
std::span<const BackendInfo> backends();

const BackendInfo& backend_info(Backend backend);

// "gossip, null": those of this build.
std::string available_backends();

// Throws ConfigError, in one line with the reason, for a back end that this build lacks, or an
// engine of it, and for settings that the back end cannot have. Loading a file does not ask.
void require_backend(const Config& config);

// Throws ConfigError where gradients would travel unencrypted though the file asks for encryption.
void require_plaintext_allowed(const Config& config);

}  // namespace dpwa
