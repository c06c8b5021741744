#include "dpwa/security/security.h"

#include <sys/prctl.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <boost/algorithm/string/replace.hpp>
#include <cstdlib>
#include <exception>
#include <string>
#include <utility>

#include "dpwa/config/config.h"

namespace dpwa {
namespace {

SecurityConfig for_node(SecurityConfig config, const std::string& name) {
  for (std::string* path : {&config.key_file, &config.ca, &config.cert, &config.key})
    boost::algorithm::replace_all(*path, "{name}", name);
  return config;
}

bool is_secure(const SecurityConfig& config) {
  return config.mode == "psk" || config.mode == "mtls";
}

}  // namespace

Security::Security(const Config& config, const std::string& place, std::string name)
    : config_(for_node(config.security, place)), name_(std::move(name)) {
  const auto loaded = load();
  if (!loaded) fail_at_key(config, "security." + loaded.error().key, loaded.error().problem);
  context_ = *loaded;
}

KeyedResult<std::shared_ptr<const TlsContext>> Security::load() const {
  try {
    if (config_.mode == "mtls")
      return TlsContext::load({config_.ca, config_.cert, config_.key, name_});
    const auto keys = read_key_file(config_.key_file);
    if (!keys) return KeyedFault{"key_file", keys.error()};
    return std::shared_ptr<const TlsContext>(std::make_shared<const TlsContext>(*keys));
  } catch (const std::exception& error) {
    return KeyedFault{"mode", error.what()};
  }
}

std::shared_ptr<const TlsContext> Security::context() const {
  const MutexLock lock(mutex_);
  return context_;
}

std::optional<std::string> Security::reload() {
  auto loaded = load();
  if (!loaded) return loaded.error().problem;
  const MutexLock lock(mutex_);
  context_.swap(*loaded);
  return std::nullopt;
}

std::shared_ptr<Security> make_security(const Config& config) {
  if (!is_secure(config.security)) return nullptr;
  return std::make_shared<Security>(config, config.self, config.self);
}

std::shared_ptr<Security> make_observer_security(const Config& config, const std::string& name) {
  if (!is_secure(config.security)) return nullptr;
  if (!name.empty()) return std::make_shared<Security>(config, name, "");
  std::optional<ConfigError> first;
  for (const auto* processes : {&config.nodes, &config.kvstore.servers}) {
    for (const NodeEntry& process : *processes) {
      try {
        return std::make_shared<Security>(config, process.name, "");
      } catch (const ConfigError& error) {
        if (!first) first = error;
      }
    }
  }
  if (first) throw ConfigError(*first);
  const SecurityConfig& files = config.security;
  const auto is_of_one = [](const std::string& path) {
    return path.find("{name}") != std::string::npos;
  };
  const bool by_name =
      std::ranges::any_of(std::array{files.key_file, files.ca, files.cert, files.key}, is_of_one);
  return by_name ? nullptr : std::make_shared<Security>(config, "", "");
}

void forbid_core_dumps() {
  const char* wanted = std::getenv("DPWA_CORE_DUMPS");
  const std::string value = wanted == nullptr ? "" : wanted;
  if (value == "1") return;
  if (!value.empty() && value != "0")
    throw ConfigError("DPWA_CORE_DUMPS: '" + value + "' is not accepted; accepted: 0, 1");
  // The limit alone is not enough: a core_pattern that pipes into a program ignores it.
  ::prctl(PR_SET_DUMPABLE, 0);
  rlimit limit{};
  if (::getrlimit(RLIMIT_CORE, &limit) == 0) {
    limit.rlim_cur = 0;
    ::setrlimit(RLIMIT_CORE, &limit);
  }
}

}  // namespace dpwa
