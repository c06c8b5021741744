#include "dpwa/config/backends.h"

#include <algorithm>
#include <array>

#include "dpwa/config/names.h"
#include "dpwa/config/resolve.h"
#include "dpwa/config/text.h"

// DPWA_GOSSIP_ABSENT and similar: why CMake left out a back end or an engine, or "".

namespace dpwa {
namespace {

constexpr std::array<BackendInfo, 4> all = {{
    {Backend::gossip, DPWA_GOSSIP_ABSENT},
    {Backend::collective, DPWA_COLLECTIVE_ABSENT},
    {Backend::kvstore, DPWA_KVSTORE_ABSENT},
    {Backend::null, ""},
}};

// The engines of backend collective, except `auto`, which means dpwa.
struct EngineInfo {
  CollectiveEngine engine;
  std::string_view absent;  // why this build lacks it; empty: it has it
};

constexpr std::array<EngineInfo, 4> all_engines = {{
    {CollectiveEngine::dpwa, ""},
    {CollectiveEngine::gloo, DPWA_ENGINE_GLOO_ABSENT},
    {CollectiveEngine::nccl, DPWA_ENGINE_NCCL_ABSENT},
    {CollectiveEngine::mpi, DPWA_ENGINE_MPI_ABSENT},
}};

CollectiveEngine chosen_engine(const Config& config) {
  const CollectiveEngine asked = config.collective.engine;
  return asked == CollectiveEngine::automatic ? CollectiveEngine::dpwa : asked;
}

void require_engine(const Config& config) {
  const CollectiveEngine engine = chosen_engine(config);
  const auto* const info = std::ranges::find(all_engines, engine, &EngineInfo::engine);
  if (info->absent.empty()) return;
  std::string accepted;
  for (const EngineInfo& other : all_engines) {
    if (!other.absent.empty()) continue;
    if (other.engine == CollectiveEngine::dpwa) accepted = "auto";
    accepted.append(accepted.empty() ? "" : ", ").append(config::name_of(other.engine));
  }
  fail_at_key(config, "collective.engine",
              std::string(config::name_of(engine)) + ": " + std::string(info->absent) +
                  "; accepted: " + (accepted.empty() ? "none" : accepted));
}

void require_no_daemon(const Config& config) {
  if (!config.gossip.daemon) return;
  fail_at_key(config, "gossip.daemon",
              "'true' is not offered by backend " + std::string(config::name_of(config.backend)) +
                  "; accepted: false");
}

// The servers take only workers that the file names.
void require_store(const Config& config) {
  const KvstoreConfig& store = config.kvstore;
  if (is_local(store.type)) {
    if (config.nodes.size() <= 1) return;
    fail_at_key(config, "kvstore.type",
                config::shown(config::name_in(config::kvstore_type_words, store.type)) +
                    " is for one process, and there are " + std::to_string(config.nodes.size()) +
                    " nodes; accepted: one node, or dist_sync, dist_async, dist_ssp");
  }
  if (store.servers.empty())
    fail_at_key(config, "kvstore.servers", "missing; accepted: a list of {name, host, port}");
  if (config.nodes.empty())
    fail_at_key(config, "nodes", "missing; accepted: the workers of backend kvstore");
  if (store.min_workers > config.nodes.size()) {
    const std::string nodes = std::to_string(config.nodes.size());
    fail_at_key(config, "kvstore.min_workers",
                std::to_string(store.min_workers) + " workers, and nodes lists " + nodes +
                    "; accepted: 0 to " + nodes);
  }
}

}  // namespace

std::span<const BackendInfo> backends() {
  return all;
}

const BackendInfo& backend_info(Backend backend) {
  return all.at(static_cast<std::size_t>(backend));
}

std::vector<std::string> available_names() {
  std::vector<std::string> names;
  for (const BackendInfo& info : all) {
    if (info.absent.empty()) names.emplace_back(config::name_of(info.backend));
  }
  return names;
}

std::string available_backends() {
  return config::joined(available_names());
}

void require_backend(const Config& config) {
  const BackendInfo& info = backend_info(config.backend);
  if (!info.absent.empty()) {
    fail_at_key(config, "backend",
                config::shown(config::name_of(info.backend)) + ' ' + std::string(info.absent) +
                    "; accepted: " + available_backends());
  }
  if (config.backend == Backend::kvstore) {
    require_no_daemon(config);
    require_store(config);
  }
  if (config.backend != Backend::collective) return;
  require_engine(config);
  require_plaintext_allowed(config);
  require_one_family(config);
  require_no_daemon(config);
}

void require_servers(const Config& config) {
  if (config.backend != Backend::kvstore)
    fail_at_key(config, "backend", "has no servers; accepted: kvstore");
  if (is_local(config.kvstore.type)) {
    fail_at_key(config, "kvstore.type",
                "this type has no servers; accepted: dist_sync, dist_async, dist_ssp");
  }
  require_store(config);
}

void require_plaintext_allowed(const Config& config) {
  if (chosen_engine(config) == CollectiveEngine::dpwa) return;
  const bool secured = config.security.mode == "psk" || config.security.mode == "mtls";
  if (!secured || config.collective.plaintext) return;
  const bool all_loopback = std::ranges::all_of(config.nodes, [](const NodeEntry& node) {
    if (node.addresses.empty()) return config::is_loopback(node.host);
    return std::ranges::all_of(node.addresses,
                               [](const std::string& one) { return config::is_loopback(one); });
  });
  if (all_loopback) return;
  fail_at_key(config, "collective.plaintext",
              std::string("the gradients of engine ") + config::name_of(config.collective.engine) +
                  " travel unencrypted, which security.mode " + config.security.mode +
                  " does not allow beyond this machine; accepted: plaintext: true, or engine dpwa");
}

// Gloo listens on the own address alone, and connects to those of the others from it. The processes
// of mpirun find each other by themselves.
void require_one_family(const Config& config) {
  const CollectiveEngine engine = chosen_engine(config);
  if (engine == CollectiveEngine::dpwa || engine == CollectiveEngine::mpi) return;
  const auto address_of = [](const NodeEntry& node) {
    return node.addresses.empty() ? node.host : node.addresses.front();
  };
  const auto is_v6 = [&](const NodeEntry& node) {
    return address_of(node).find(':') != std::string::npos;
  };
  const auto words_for = [&](const NodeEntry& node) {
    return "'" + node.name + "' has " + address_of(node);
  };
  const auto is_known = [](const NodeEntry& node) {
    return !node.addresses.empty() || is_numeric_host(node.host);
  };
  const std::vector<NodeEntry>& nodes = config.nodes;
  const auto first = std::ranges::find_if(nodes, is_known);
  const auto other = std::ranges::find_if(
      nodes, [&](const NodeEntry& node) { return is_known(node) && is_v6(node) != is_v6(*first); });
  if (other == nodes.end()) return;
  fail_at_key(config, "nodes[" + std::to_string(other - nodes.begin()) + "].host",
              words_for(*first) + ", " + words_for(*other) +
                  "; engine gloo cannot connect IPv4 with IPv6; accepted: addresses of one family "
                  "for all nodes, or engine dpwa");
}

}  // namespace dpwa
