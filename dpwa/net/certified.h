#pragma once

#include <optional>
#include <string>
#include <vector>

namespace dpwa::net {

// Whether a connection whose other end has proved `names` (none: no certificates in use) may be
// that of node `name`. Pure.
bool is_for(const std::optional<std::vector<std::string>>& names, const std::string& name);

// The names for a log, however they came to be in a certificate.
std::string words_for(const std::vector<std::string>& names);

}  // namespace dpwa::net
