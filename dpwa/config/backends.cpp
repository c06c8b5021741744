#include "dpwa/config/backends.h"

#include <array>

#include "dpwa/config/locations.h"
#include "dpwa/config/text.h"

// DPWA_GOSSIP_ABSENT and its like: why CMake left a back end out, or "".

namespace dpwa {
namespace {

constexpr std::array<BackendInfo, 4> all = {{
    {Backend::gossip, "gossip", DPWA_GOSSIP_ABSENT},
    {Backend::collective, "collective", DPWA_COLLECTIVE_ABSENT},
    {Backend::kvstore, "kvstore", DPWA_KVSTORE_ABSENT},
    {Backend::null, "null", ""},
}};

}  // namespace

std::span<const BackendInfo> backends() {
  return all;
}

const BackendInfo& backend_info(Backend backend) {
  return all.at(static_cast<std::size_t>(backend));
}

std::string available_backends() {
  std::string names;
  for (const BackendInfo& info : all) {
    if (info.absent.empty()) names.append(names.empty() ? "" : ", ").append(info.name);
  }
  return names;
}

void require_backend(const Config& config) {
  const BackendInfo& info = backend_info(config.backend);
  if (info.absent.empty()) return;
  const std::string file = config.file.empty() ? "configuration" : config.file.string();
  config::Locations(file).fail_at(config.backend_line, "backend",
                                  config::shown(std::string(info.name)) + ' ' +
                                      std::string(info.absent) +
                                      "; accepted: " + available_backends());
}

}  // namespace dpwa
