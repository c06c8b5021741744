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
constexpr std::size_t widest = 100;  // of a map on one line

using config::Key;
using config::KeySection;
using config::Layout;

std::string value_of(const Key& key) {
  return key.name + ": " + (key.sample.empty() ? key.default_value : key.sample);
}

// A key without a default is shown as a comment. `in_comment`: so is the section around it.
std::string key_line(const Key& key, const std::string& indent, bool in_comment = false) {
  const bool marked = key.default_value.empty() && !in_comment;
  std::string line = indent + (marked ? "# " : "") + value_of(key);
  if (key.comment.empty()) return line + '\n';
  line.resize(std::max(line.size() + 1, comment_column), ' ');
  return line + "# " + key.comment + '\n';
}

// The values of a map on one line. The parameters of the method stand beside it.
std::vector<std::string> values_of(const KeySection& section) {
  std::vector<std::string> values;
  for (const Key& key : section.keys) {
    values.push_back(value_of(key));
    if (config::path_of(section, key) != "interpolation.method") continue;
    for (const auto& parameter : interpolation_registry().find(key.default_value)->parameters)
      values.push_back(parameter.name + ": " + config::number_text(parameter.default_value));
  }
  return values;
}

// "NAME: {a: 1, b: 2}", on lines of their own and of nearly equal length where one is too short.
std::string flow_map(const KeySection& section, const std::string& indent) {
  const std::vector<std::string> values = values_of(section);
  const std::string name = indent + config::leaf_of(section) + ":";
  const std::string whole = '{' + config::joined(values) + '}';
  if (name.size() + 1 + whole.size() <= widest) return name + ' ' + whole;
  std::size_t lines = (indent.size() + 2 + whole.size() - 1) / widest + 1;
  const std::size_t share = whole.size() / lines;
  std::string text = name + '\n' + indent + "  {";
  std::size_t length = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i > 0) text += ',';
    if (lines > 1 && length + values[i].size() / 2 > share) {
      text += '\n' + indent + "   ";
      length = 0;
      --lines;
    } else if (i > 0) {
      text += ' ';
    }
    text += values[i];
    length += values[i].size() + 2;
  }
  return text + '}';
}

void add_section(std::string& text, const KeySection& section, const std::string& indent) {
  for (const std::string& line : section.above) text += indent + "# " + line + '\n';
  if (section.layout == Layout::flow || section.path == "interpolation") {
    std::string line = flow_map(section, indent);
    if (!section.beside.empty()) {
      line.resize(std::max(line.size() + 1, comment_column), ' ');
      line += "# " + section.beside;
    }
    text += line + '\n';
    return;
  }
  const bool shown = section.required.empty();
  const std::string inner_indent = indent + (shown ? "" : "# ") + "  ";
  text += indent + (shown ? "" : "# ") + config::leaf_of(section) + ":\n";
  for (const Key& key : section.keys) text += key_line(key, inner_indent, !shown);
  for (const KeySection* inner : config::sections_in(section))
    add_section(text, *inner, indent + "  ");
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

// Replaces the line that begins so.
void replace_line(std::string& text, const std::string& beginning, const std::string& by) {
  const std::size_t from = text.find('\n' + beginning) + 1;
  text.replace(from, text.find('\n', from) + 1 - from, by);
}

std::string backend_line(const std::string& backend) {
  Key key = config::key_at("backend");
  key.default_value = backend;
  return key_line(key, "");
}

std::string plaintext_line() {
  Key key = config::key_at("collective.plaintext");
  key.default_value = "true";
  return key_line(key, "  ");
}

std::string server_lines(const ClusterTemplate& wanted) {
  std::string lines = "  servers:\n";
  for (unsigned i = 0; i < wanted.servers; ++i)
    lines += "    - " + entry(wanted, "s", i, wanted.server_port) + "}\n";
  return lines;
}

}  // namespace

std::string cluster_file_text(const ClusterTemplate& wanted) {
  std::string text = head;
  text += key_line(config::key_at("cluster"), "") + about_nodes;
  for (unsigned i = 0; i < wanted.nodes; ++i) text += node_line(wanted, i);
  text += '\n' + backend_line(wanted.backend);
  for (const KeySection* section : config::sections_in(config::section_at(""))) {
    if (section->path == "security") {  // of the mode that is wanted
      const char* beyond_psk = wanted.insecure ? security_insecure : security_loopback;
      text += wanted.psk ? security_psk : beyond_psk;
    } else {
      text += '\n';
      add_section(text, *section, "");
    }
  }
  if (wanted.plaintext) replace_line(text, "  plaintext: ", plaintext_line());
  if (wanted.servers > 0) replace_line(text, "  # servers: ", server_lines(wanted));
  return text;
}

}  // namespace dpwa::cli
