#pragma once

#include "dpwa/config/config.h"
#include "dpwa/log/log.h"

namespace dpwa {

// Opens the log that the cluster file describes. Call use() on it after everything else that may
// fail. Throws ConfigError when log.file cannot be opened.
NewLog open_log(const Config& config);

// For back ends that take up nothing else of a cluster file that was read again, except the files
// of the security section: opens its log, uses it, and says so in it. Throws as open_log().
void reload_log(const Config& fresh, Backend backend);

// A check that writes nothing. Throws ConfigError when log.file is a directory.
void check_log_file(const Config& config);

}  // namespace dpwa
