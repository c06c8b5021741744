#include "dpwa/config/nodes.h"

#include <algorithm>

#include "dpwa/config/text.h"

namespace dpwa::config {
namespace {

constexpr int max_core = 65535;

std::vector<int> read_cores(const Field& field) {
  std::vector<int> cores;
  for (const Field& item : field.list("a list of processor numbers such as [0, 1]")) {
    const int core = static_cast<int>(item.integer(0, max_core, "a processor number"));
    if (std::find(cores.begin(), cores.end(), core) != cores.end()) {
      item.fail("processor " + std::to_string(core) + " is given twice; accepted: each once");
    }
    cores.push_back(core);
  }
  return cores;
}

NodeEntry read_node(const Section& section) {
  section.accept_only({"name", "host", "port", "bind", "cores"});
  NodeEntry node;
  node.name = section.need("name", "a name of its own").name();
  node.port = read_port(section.need("port", "a TCP port from 1 to 65535"));
  if (const Field* host = section.find("host")) node.host = read_host(*host);
  if (const Field* bind = section.find("bind")) node.bind = read_host(*bind);
  if (const Field* cores = section.find("cores")) node.cores = read_cores(*cores);
  return node;
}

}  // namespace

std::string read_host(const Field& field) {
  const std::string accepted = "an IP address or a host name";
  const std::string host = field.text(accepted);
  const auto printable = [](char c) { return static_cast<unsigned char>(c) > 0x20 && c != 0x7f; };
  if (host.empty() || host.size() > 253 || !std::all_of(host.begin(), host.end(), printable)) {
    field.fail_type("a host", accepted);
  }
  return host;
}

std::uint16_t read_port(const Field& field) {
  return static_cast<std::uint16_t>(field.integer(1, 65535, "a TCP port"));
}

void read_nodes(const Field& list, std::vector<NodeEntry>& nodes) {
  const std::string accepted = "a list of {name, host, port}";
  const std::vector<Field> items = list.list(accepted);
  if (items.empty()) list.fail("an empty list; accepted: at least one {name, host, port}");
  nodes.clear();
  for (const Field& item : items) nodes.push_back(read_node(Section(item, "{name, host, port}")));
}

void print_nodes(YAML::Emitter& out, const std::vector<NodeEntry>& nodes) {
  out << YAML::BeginSeq;
  for (const NodeEntry& node : nodes) {
    out << YAML::Flow << YAML::BeginMap;
    out << YAML::Key << "name" << YAML::Value << node.name;
    out << YAML::Key << "host" << YAML::Value << node.host;
    if (!node.bind.empty()) out << YAML::Key << "bind" << YAML::Value << node.bind;
    out << YAML::Key << "port" << YAML::Value << node.port;
    if (!node.cores.empty()) out << YAML::Key << "cores" << YAML::Value << YAML::Flow << node.cores;
    out << YAML::EndMap;
  }
  out << YAML::EndSeq;
}

}  // namespace dpwa::config
