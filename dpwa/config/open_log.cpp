#include "dpwa/config/open_log.h"

#include <filesystem>
#include <stdexcept>
#include <string>
#include <system_error>

#include "dpwa/base/plain_text.h"
#include "dpwa/config/names.h"
#include "dpwa/config/text.h"

namespace dpwa {
namespace {

[[noreturn]] void refuse(const Config& config, const std::string& why) {
  fail_at_key(config, "log.file",
              why + "; accepted: a file that can be written, or \"\" for stderr");
}

}  // namespace

NewLog open_log(const Config& config) {
  try {
    return NewLog(config.log.level, config.log.file, config.self);
  } catch (const std::runtime_error& error) {
    refuse(config, one_line(error.what()));
  }
}

void reload_log(const Config& fresh, Backend backend) {
  open_log(fresh).use();
  log(LogLevel::info, "config",
      std::string("reloaded the log settings; with backend ") + config::name_of(backend) +
          " all else, except keys and certificates, needs a restart");
}

void check_log_file(const Config& config) {
  const std::string& file = config.log.file;
  std::error_code unknown;
  if (file.ends_with('/') || std::filesystem::is_directory(file, unknown))
    refuse(config, config::shown(file) + " is a directory");
}

}  // namespace dpwa
