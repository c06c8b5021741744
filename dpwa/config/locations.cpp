#include "dpwa/config/locations.h"

#include "dpwa/base/plain_text.h"
#include "dpwa/config/config.h"

namespace dpwa::config {

void Locations::fail(const std::string& key, const std::string& problem) const {
  for (std::string around = key; !around.empty();) {
    const auto found = origins_.find(around);
    if (found != origins_.end()) {
      const Origin& origin = found->second;
      if (!origin.variable.empty()) {
        throw ConfigError("environment: " + origin.variable + ": " + problem);
      }
      fail_at(origin.line, key, problem);
    }
    const std::size_t cut = around.find_last_of(".[");
    around.resize(cut == std::string::npos ? 0 : cut);
  }
  fail_at(0, key, problem);
}

void Locations::fail_at(int line, const std::string& key, const std::string& problem) const {
  std::string text = one_line(file_) + ":";
  if (line > 0) text += std::to_string(line) + ":";
  if (!key.empty()) text += " " + key + ":";
  throw ConfigError(text + " " + problem);
}

}  // namespace dpwa::config
