#include <CLI/App.hpp>
#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "dpwa/base/processors.h"
#include "dpwa/base/threads.h"
#include "dpwa/cli/app.h"
#include "dpwa/cli/local_machine.h"
#include "dpwa/cli/text_table.h"
#include "dpwa/config/backends.h"
#include "dpwa/config/config.h"
#include "dpwa/config/keys.h"
#include "dpwa/config/names.h"
#include "dpwa/config/open_log.h"
#include "dpwa/config/text.h"
#include "dpwa/node/observe_port.h"
#include "dpwa/rules/pair_ledger.h"
#include "dpwa/security/security.h"
#include "interpolation/guarded.h"

namespace dpwa::cli {
namespace {

struct CheckOptions {
  std::string file;
  std::string name;
};

// The setting that leaves the pair ledger without effect; empty: it has one, or is off.
std::string ledger_obstacle(const Config& config) {
  if (config.backend != Backend::gossip || !config.gossip.ledger) return {};
  if (config.gossip.blend != BlendMode::delta) return "gossip.blend: lerp";
  const std::string& method = config.interpolation.method;
  if (const auto factor = make_interpolation(config.interpolation).constant())
    return *factor < PairLedger::least_factor ? "a factor below 1/256" : "";
  return method != "constant" ? "interpolation.method: " + method
                              : "interpolation.divergence_threshold";
}

// Warns of the cores of nodes and servers of this machine that it does not have. Those of other
// machines are unknown here.
void check_cores(const CheckOptions& options, const Config& config, CommandContext& context) {
  const LocalMachine machine;
  const std::vector<int> usable = usable_processors();
  for (const auto* entries : {&config.nodes, &config.kvstore.servers}) {
    for (const NodeEntry& node : *entries) {
      if (node.cores.empty() || !machine.hosts(node)) continue;
      std::vector<std::string> missing;
      for (const int core : node.cores) {
        if (std::ranges::find(usable, core) == usable.end())
          missing.push_back(std::to_string(core));
      }
      if (missing.empty()) continue;
      context.err << "warning: " << options.file << ": " << node.name << ": cores "
                  << config::joined(missing) << " cannot be used on this machine"
                  << (missing.size() == node.cores.size() ? ", so scripts/run.sh does not pin it"
                                                          : "")
                  << '\n';
    }
  }
}

void check(const CheckOptions& options, CommandContext& context) {
  const Config config = options.name.empty() ? load_launchable(options.file)
                                             : load_process_config(options.file, options.name);
  const NodeEntry* const server = config.self_server();
  if (server != nullptr) {
    require_servers(config);
  } else {
    require_backend(config);
  }
  check_log_file(config);
  (void)observe_token(config);
  // These throw ConfigError for unusable files. Without a name: where no node can use its own.
  config.self.empty() ? make_observer_security(config, "") : make_security(config);
  context.out << to_yaml(config);
  if (const std::size_t servers = config.kvstore.servers.size();
      servers > 0 && config.backend != Backend::kvstore)
    context.err << "warning: " << options.file << ": kvstore.servers lists "
                << config::counted(servers, "server") << ", which backend "
                << config::name_of(config.backend) << " does not use; backend: kvstore does\n";
  if (const std::size_t nodes = config.nodes.size(); nodes > 0 && config.gossip.min_nodes > nodes)
    context.err << "warning: " << options.file << ": gossip.min_nodes requires "
                << config.gossip.min_nodes << ", and the file has "
                << config::counted(nodes, "node")
                << (config.backend == Backend::gossip ? ", so a run fails unless others join\n"
                                                      : ", which dpwa-train refuses\n");
  check_cores(options, config, context);
  if (!config.original_form_by.empty())
    context.err << "note: " << options.file << ": of the form of the original dpwa, as "
                << config.original_form_by
                << ". So its defaults are the original's: gossip.blend: lerp, a step_budget_ms of "
                   "timeout_ms, no final average\n";
  if (const std::string obstacle = ledger_obstacle(config); !obstacle.empty())
    context.err << "note: " << options.file << ": gossip.ledger has no effect with " << obstacle
                << ", so nodes that step more slowly count for more than their share\n";
  if (config.backend == Backend::collective && config.collective.engine == CollectiveEngine::mpi)
    context.err << "note: " << options.file
                << ": collective.engine: mpi is for processes that mpirun starts, as in mpirun -np "
                << (config.nodes.empty() ? "N" : std::to_string(config.nodes.size()))
                << " PROGRAM\n";
  if (!context.out.flush()) return;  // which is a failure of the program
  context.err << "ok: " << options.file << ": cluster " << config.cluster << ", ";
  if (config.nodes.empty()) {
    context.err << (config.seeds.empty()
                        ? "nodes come from the launcher (torchrun, srun, mpirun, Kubernetes)"
                        : "nodes meet by seeds");
  } else {
    context.err << config::counted(config.nodes.size(), "node");
  }
  if (!config.self.empty()) {
    const NodeEntry& self = server != nullptr ? *server : config.self_node();
    context.err << (server != nullptr ? "; server " : "; ") << self.name << " listens on "
                << self.bind_host() << " port " << self.port;
  }
  context.err << '\n';
}

void add_config_check_command(CLI::App& parent, CommandContext& context) {
  auto options = std::make_shared<CheckOptions>();
  CLI::App* command = parent.add_subcommand(
      "check", "Validate a cluster file and print the effective configuration as YAML");
  command->add_option("FILE", options->file, "The cluster file")->required();
  command->add_option("--name", options->name,
                      "Check as this node or server of backend kvstore, with the DPWA_* variables "
                      "of the environment");
  command->callback([options, &context] { check(*options, context); });
}

struct NodesOptions {
  std::string file;
  bool local_only = false;
  bool json = false;
};

std::string cores_text(const std::vector<int>& cores) {
  std::string text;
  for (const int core : cores) {
    if (!text.empty()) text += ',';
    text += std::to_string(core);
  }
  return text.empty() ? "-" : text;
}

using Json = nlohmann::ordered_json;

Json entries_of(const std::vector<NodeEntry>& nodes, bool local_only) {
  const LocalMachine machine;
  Json list = Json::array();
  for (const NodeEntry& node : nodes) {
    const bool local = machine.hosts(node);
    if (local_only && !local) continue;
    list.push_back({{"name", node.name},
                    {"host", node.host},
                    {"port", node.port},
                    {"cores", node.cores},
                    {"local", local}});
  }
  return list;
}

void list_nodes(const NodesOptions& options, CommandContext& context) {
  std::string text;
  const Config config = load_cluster(options.file, &text);
  const Json nodes = entries_of(config.nodes, options.local_only);
  if (options.json) {
    const bool collective = config.backend == Backend::collective;
    const bool kvstore = config.backend == Backend::kvstore;
    const bool has_servers = kvstore && !is_local(config.kvstore.type);
    const Duration start_wait = collective ? config.collective.start_wait
                                : kvstore  ? config.kvstore.start_wait
                                           : config.gossip.start_wait;
    const Json document = {
        {"backend", config::name_of(config.backend)},
        {"start_wait_ms", std::chrono::ceil<std::chrono::milliseconds>(start_wait).count()},
        {"nodes", nodes},
        {"servers",
         has_servers ? entries_of(config.kvstore.servers, options.local_only) : Json::array()},
        {"processors", processor_count()},
        {"text", text}};
    context.out << document.dump() << '\n';
    return;
  }
  for (const Json& node : nodes) {
    context.out << node["name"].get<std::string>() << '\t' << node["host"].get<std::string>()
                << '\t' << node["port"] << '\t' << cores_text(node["cores"]) << '\t'
                << (node["local"].get<bool>() ? "local" : "remote") << '\n';
  }
}

void add_config_nodes_command(CLI::App& parent, CommandContext& context) {
  auto options = std::make_shared<NodesOptions>();
  CLI::App* command = parent.add_subcommand("nodes",
                                            "List the nodes for scripts: name, host, port, cores "
                                            "(0,1 or -) and local or remote, separated by tabs");
  command->add_option("FILE", options->file, "The cluster file")->required();
  command->add_flag("--local", options->local_only, "Only the nodes that belong to this machine");
  command->add_flag("--json", options->json,
                    "Print one JSON document instead, with the servers of backend kvstore, the "
                    "back end, its start_wait_ms and the text of the file");
  command->callback([options, &context] { list_nodes(*options, context); });
}

using config::Key;
using config::KeySection;

// A reload keeps the own entry of `nodes`.
std::string reload_of(const KeySection& section, const Key& key) {
  if (config::path_of(section, key) == "nodes") return "other nodes";
  return key.reloads ? "yes" : "no";
}

constexpr std::size_t list_width = 100;

void list(std::ostream& out) {
  TextTable table({"KEY", "DEFAULT", "RELOAD", "ACCEPTED"}, list_width);
  for (const KeySection& section : config::key_table()) {
    for (const Key& key : section.keys) {
      table.add({config::path_of(section, key), key.default_value.empty() ? "-" : key.default_value,
                 reload_of(section, key), config::plain_accepted(key)});
    }
  }
  table.print(out);
}

std::string code(const std::string& text) {
  return text.empty() ? "–" : '`' + text + '`';
}

// A row of a table in Markdown, where '|' ends a cell.
void print_row(std::ostream& out, const std::vector<std::string>& cells) {
  for (const std::string& cell : cells) {
    out << "| ";
    for (const char c : cell) {
      if (c == '|') out << '\\';
      out << c;
    }
    out << ' ';
  }
  out << "|\n";
}

// As GitHub makes the anchor of the heading "## `gossip.firewall`".
std::string anchor_of(const KeySection& section) {
  std::string anchor = section.path;
  std::erase(anchor, '.');
  return anchor;
}

// One table for each section, between the two lines that surround it in docs/CONFIGURATION.md.
void print_reference(std::ostream& out) {
  for (const KeySection& section : config::key_table()) {
    out << "<!-- keys of " << (section.path.empty() ? "the file" : section.path)
        << ", made by scripts/update_key_reference.py -->\n";
    print_row(out, {"key", "default", "accepted", "reload", "meaning"});
    out << "|---|---|---|---|---|\n";
    for (const Key& key : section.keys) {
      print_row(out, {code(key.name), code(key.default_value), key.accepted,
                      reload_of(section, key), key.meaning});
      if (key.alias.empty()) continue;
      print_row(out, {code(key.alias), "–", key.accepted, reload_of(section, key),
                      "the original's name of `" + key.name + "`; one of the two"});
    }
    for (const KeySection* inner : config::sections_in(section)) {
      print_row(out, {code(config::leaf_of(*inner)), "–", "a map", "",
                      "[below](#" + anchor_of(*inner) + ")"});
    }
    out << "<!-- end of keys -->\n";
  }
}

void add_config_keys_command(CLI::App& parent, CommandContext& context) {
  auto markdown = std::make_shared<bool>(false);
  CLI::App* command =
      parent.add_subcommand("keys",
                            "List the keys of a cluster file: default, accepted values, and "
                            "whether a running node takes a new value over (SIGHUP)");
  command->add_flag("--markdown", *markdown,
                    "Print the tables of docs/CONFIGURATION.md, which say what each key means");
  command->callback([markdown, &context] {
    if (*markdown) {
      print_reference(context.out);
    } else {
      list(context.out);
    }
  });
}

}  // namespace

void add_config_command(CLI::App& parent, CommandContext& context) {
  CLI::App* command = parent.add_subcommand("config", "Check and inspect a cluster file");
  command->require_subcommand(1);
  add_config_check_command(*command, context);
  add_config_keys_command(*command, context);
  add_config_nodes_command(*command, context);
}

}  // namespace dpwa::cli
