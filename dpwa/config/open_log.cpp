#include "dpwa/config/open_log.h"

#include "dpwa/config/locations.h"

namespace dpwa {

NewLog open_log(const Config& config) {
  try {
    return NewLog(config.log.level, config.log.file, config.self);
  } catch (const std::runtime_error& error) {
    config::Locations(config.file.string())
        .fail_at(config.log.file_line, "log.file",
                 std::string(error.what()) +
                     "; accepted: a file that can be written, or \"\" for stderr");
  }
}

}  // namespace dpwa
