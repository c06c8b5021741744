#pragma once

#include "dpwa/config/config.h"
#include "dpwa/log/log.h"

namespace dpwa {

// The log as the cluster file has it, for its user to use once all else is done that may fail.
// Throws ConfigError where log.file cannot be opened.
NewLog open_log(const Config& config);

// For a check that writes nothing: throws ConfigError where log.file cannot be a file, as a folder
// is in its place.
void check_log_file(const Config& config);

}  // namespace dpwa
