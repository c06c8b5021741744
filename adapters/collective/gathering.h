#pragma once

#include <c10/core/Device.h>

#include <memory>

#include "adapters/collective/engine/process_group.h"
#include "dpwa/collective/step_group.h"
#include "dpwa/config/config.h"
#include "dpwa/group/group_handler.h"
#include "dpwa/net/local_process.h"

namespace dpwa::collective {

// Forms the group of all nodes of the file, once, for programs that need no other group.
// Blocks for collective.start_wait at most, then throws std::runtime_error with the names of the
// nodes that are missing.
std::shared_ptr<ProcessGroup> gather_all(const Config& config, LocalProcess& local,
                                         std::shared_ptr<group::Inbox> inbox);
// Their groups are ProcessGroups. Of the engine of the file: throws CollectiveError as
// make_engine() does.
Connector connector_of(const Engine& engine);
Connector connector_of(const Config& config);

// Throws ConfigError for an engine that this build lacks, or that this process cannot use.
void require_engine(const Config& config);
// Throws ConfigError for a model on a device that the engine of the file cannot send from.
void require_device(const Config& config, const c10::Device& device);

}  // namespace dpwa::collective
