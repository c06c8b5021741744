#pragma once

#include <memory>

#include "dpwa/config/config.h"
#include "dpwa/group/group_handler.h"
#include "dpwa/node/endpoint.h"

namespace dpwa::group {

// A process that serves its status and takes the messages of its group, and no parameters. Throws
// ConfigError as Endpoint does.
std::unique_ptr<Endpoint> group_endpoint(const Config& config, std::shared_ptr<Inbox> inbox);

}  // namespace dpwa::group
