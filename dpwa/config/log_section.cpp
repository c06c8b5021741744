#include "dpwa/config/sections.h"

namespace dpwa::config {

std::string read_log_level(const Field& field) {
  return field.choice({"trace", "debug", "info", "warn", "error", "off"});
}

void read_log(const Section& section, LogConfig& log) {
  section.accept_only({"level", "file"});
  if (const Field* field = section.find("level")) log.level = read_log_level(*field);
  if (const Field* field = section.find("file")) {
    log.file = field->text("a path, or \"\" for stderr");
    log.file_line = field->line();
  }
}

}  // namespace dpwa::config
