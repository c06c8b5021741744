#include "dpwa/cli/cluster_template.h"

#include <algorithm>
#include <cstddef>

#include "dpwa/config/keys.h"
#include "dpwa/config/text.h"
#include "interpolation/registry.h"

namespace dpwa::cli {
namespace {

constexpr const char* head =
    R"(# A cluster of dpwa nodes. Every node reads this same file and finds itself by its name:
#   dpwa-train --config cluster.yaml --name w1
# Check it after editing: dpwa config check cluster.yaml
# Durations and sizes accept units (500ms, 2s, 64MiB); a bare number has the unit of the key's name.
# These are the keys that most clusters need. dpwa config keys lists all of them.

)";

constexpr const char* about_nodes = R"(
# host is what peers dial. Optional: bind, where the node listens if that differs (0.0.0.0 = on every
# interface), and cores, the processors that the node is pinned to.
nodes:
)";

constexpr const char* security_insecure = R"(
# Anyone who reaches these ports can read the model and send parameters, unencrypted: private network only.
security: {mode: insecure}
)";

constexpr const char* security_loopback = R"(
# Not needed on loopback. A node listens beyond it only with an explicit mode: psk is TLS by a key that
# dpwa keygen makes, mtls is TLS by certificates; "insecure" means that anyone who reaches the port can
# read the model and send parameters: private network only.
# security: {mode: psk, key_file: cluster.key}
)";

constexpr const char* security_psk = R"(
# TLS 1.3 between nodes that hold the key of this file: dpwa keygen -o cluster.key, one copy a machine.
security: {mode: psk, key_file: cluster.key}
)";

constexpr std::size_t comment_column = 33;

using config::Key;
using config::KeySection;
using config::Layout;

std::string key_line(const Key& key, const std::string& value, const std::string& indent) {
  std::string line = indent + key.name + ": " + value;
  line.resize(std::max(line.size() + 1, comment_column), ' ');
  return line + "# " + key.comment + '\n';
}

// "NAME: {a: 1, b: 2}" below what the keys mean. The parameters of a method stand beside it.
std::string flow_map(const KeySection& section, const std::string& indent) {
  std::vector<std::string> values;
  std::string comments;
  for (const Key& key : section.keys) {
    if (key.comment.empty()) continue;
    comments += (comments.empty() ? "" : "; ") + key.comment;
    values.push_back(key.name + ": " + key.default_value);
    if (config::path_of(section, key) != "interpolation.method") continue;
    for (const auto& parameter : interpolation_registry().find(key.default_value)->parameters)
      values.push_back(parameter.name + ": " + config::number_text(parameter.default_value));
  }
  if (values.empty()) return "";
  return indent + "# " + comments + '\n' + indent + config::leaf_of(section) + ": {" +
         config::joined(values) + "}\n";
}

// "{name: w1, host: 127.0.0.1, port: 24000", for the entry with this index of those on all hosts.
std::string entry(const ClusterTemplate& wanted, const char* letter, unsigned index,
                  unsigned first_port) {
  const auto hosts = static_cast<unsigned>(wanted.hosts.size());
  const std::string& name = wanted.hosts[index % hosts];
  const bool plain = name.find_first_of(":%") == std::string::npos;
  const std::string host = plain ? name : '"' + name + '"';
  return "{name: " + (letter + std::to_string(index + 1)) + ", host: " + host +
         ", port: " + std::to_string(first_port + index / hosts);
}

std::string node_line(const ClusterTemplate& wanted, unsigned index) {
  std::string line = "  - " + entry(wanted, "w", index, wanted.port);
  if (!wanted.processors.empty()) {
    const int core = wanted.processors[index % wanted.processors.size()];
    line += ", cores: [" + std::to_string(core) + "]";
  }
  return line + "}\n";
}

std::string server_lines(const ClusterTemplate& wanted) {
  std::string lines = "  servers:\n";
  for (unsigned i = 0; i < wanted.servers; ++i)
    lines += "    - " + entry(wanted, "s", i, wanted.server_port) + "}\n";
  return lines +
         "  # snapshots: {folder: snapshots}  # where each server writes its part of a snapshot\n";
}

std::string value_of(const KeySection& section, const Key& key, const ClusterTemplate& wanted) {
  const std::string path = config::path_of(section, key);
  if (path == "backend") return wanted.backend;
  return key.default_value;
}

void add_section(std::string& text, const KeySection& section, const ClusterTemplate& wanted,
                 const std::string& indent) {
  if (section.layout == Layout::flow || section.path == "interpolation") {
    text += flow_map(section, indent);
    return;
  }
  if (!section.required.empty()) return;
  text += indent + config::leaf_of(section) + ":\n";
  for (const Key& key : section.keys) {
    if (!key.comment.empty()) text += key_line(key, value_of(section, key, wanted), indent + "  ");
  }
  for (const KeySection* inner : config::sections_in(section))
    add_section(text, *inner, wanted, indent + "  ");
  if (section.path == "kvstore") text += server_lines(wanted);
}

// Whether the section says anything to that back end.
bool is_of(const KeySection& section, const std::string& backend) {
  if (section.path == "interpolation") return backend == "gossip";
  return section.path == backend ||
         (section.path != "gossip" && section.path != "collective" && section.path != "kvstore");
}

}  // namespace

std::string cluster_file_text(const ClusterTemplate& wanted) {
  const KeySection& top = config::section_at("");
  const auto top_line = [&](const char* path) {
    return key_line(config::key_at(path), value_of(top, config::key_at(path), wanted), "");
  };
  std::string text = head + top_line("cluster") + about_nodes;
  for (unsigned i = 0; i < wanted.nodes; ++i) text += node_line(wanted, i);
  text += '\n' + top_line("backend");
  for (const KeySection* section : config::sections_in(top)) {
    if (section->path == "security") {  // of the mode that is wanted
      const char* beyond_psk = wanted.insecure ? security_insecure : security_loopback;
      text += wanted.psk ? security_psk : beyond_psk;
    } else if (is_of(*section, wanted.backend)) {
      std::string part;  // empty: no key of the section is in such a file
      add_section(part, *section, wanted, "");
      if (!part.empty()) text += '\n' + part;
    }
  }
  return text;
}

}  // namespace dpwa::cli
