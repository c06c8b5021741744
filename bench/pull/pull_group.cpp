#include "bench/pull/pull_group.h"

#include <fstream>

#include "dpwa/config/config.h"
#include "dpwa/security/key_file.h"

namespace dpwa::bench {
namespace {

// "FILE:LINE: problem" -> "problem": nobody has seen the file.
std::string without_place(const std::string& message, const std::string& file) {
  if (!message.starts_with(file)) return message;
  const auto end = message.find(": ", file.size());
  return end == std::string::npos ? message : message.substr(end + 2);
}

}  // namespace

std::string node_name(std::size_t index) {
  return "w" + std::to_string(index + 1);
}

std::string cluster_file_text(const NodeSettings& settings,
                              const std::vector<std::uint16_t>& ports) {
  std::string text = "cluster: bench\nnodes:\n";
  for (std::size_t i = 0; i < ports.size(); ++i) {
    text += "  - {name: " + node_name(i) + ", host: 127.0.0.1, port: " + std::to_string(ports[i]) +
            "}\n";
  }
  text += std::string("gossip: {timeout_ms: 60s, max_frozen_ms: 0, daemon: ") +
          (settings.daemon ? "true" : "false") + "}\n";
  text += "transport:\n";
  text +=
      std::string("  same_host: ") + (settings.transport == "same_host" ? "auto" : "off") + "\n";
  text += "  max_requests_per_second: 0\n";  // it asks as fast as it can
  text += "  encoding: " + settings.encoding + "\n";
  text += std::string("  checksum: ") + (settings.checksum ? "on" : "off") + "\n";
  if (settings.chunk_bytes != 0)
    text += "  chunk_bytes: " + std::to_string(settings.chunk_bytes) + "\n";
  text += "security:\n  mode: " + settings.security + "\n";
  if (!settings.key_file.empty()) text += "  key_file: \"" + settings.key_file + "\"\n";
  text += "log: {level: warn}\n";
  return text;
}

ClusterFile::ClusterFile(const NodeSettings& settings, const std::vector<std::uint16_t>& ports) {
  try {
    NodeSettings complete = settings;
    if (settings.security == "psk" && settings.key_file.empty()) {
      complete.key_file = folder_.path() + "/cluster.key";
      create_private_file(complete.key_file, key_file_text({new_key()}));
    }
    std::ofstream(path()) << cluster_file_text(complete, ports);
    chunk_bytes_ = load_config(path(), node_name(0)).transport.chunk_bytes;
  } catch (const ConfigError& error) {
    throw ConfigError(without_place(error.what(), path()));
  }
}

}  // namespace dpwa::bench
