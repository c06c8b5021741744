#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "adapters/collective/engine/process_group.h"
#include "dpwa/config/config.h"
#include "dpwa/group/group_handler.h"
#include "dpwa/net/local_process.h"

namespace dpwa::collective {

// How long a rank that leaves in order waits for the others.
inline constexpr std::chrono::milliseconds leave_limit(2000);

// Forms the group of all nodes of the file, once, for programs that need no other group.
// Blocks for collective.start_wait at most, then throws std::runtime_error with the names of the
// nodes that are missing.
std::shared_ptr<ProcessGroup> gather_all(const Config& config, LocalProcess& local,
                                         std::shared_ptr<group::Inbox> inbox);
// The text of its error.
std::string not_together(const std::string& problem);

EngineKind engine_kind(CollectiveEngine engine);

// Throws ConfigError for an engine that this build lacks, or that this process cannot use.
void require_engine(const Config& config);

}  // namespace dpwa::collective
