#include "adapters/collective/gathering.h"

#include <algorithm>
#include <stdexcept>

#include "adapters/collective/assembler.h"
#include "adapters/collective/terms.h"
#include "dpwa/config/locations.h"
#include "dpwa/config/resolve.h"
#include "dpwa/security/security.h"

namespace dpwa::collective {

std::vector<std::string> addresses_of(const NodeEntry& node) {
  return node.addresses.empty() ? std::vector{node.host} : node.addresses;
}

EngineKind engine_kind(CollectiveEngine engine) {
  switch (engine) {
    case CollectiveEngine::gloo:
      return EngineKind::gloo;
    case CollectiveEngine::nccl:
      return EngineKind::nccl;
    case CollectiveEngine::mpi:
      return EngineKind::mpi;
    case CollectiveEngine::automatic:
      break;
  }
  return EngineKind::automatic;
}

std::vector<StatusAnswer> ask_for_status(const Config& config, const LocalNode& local,
                                         const std::vector<std::size_t>& places, Duration timeout) {
  std::vector<PeerAddress> nodes;
  for (const std::size_t place : places) {
    const NodeEntry& node = config.nodes[place];
    nodes.push_back({node.name, addresses_of(node), node.port});
  }
  return query_status(config.cluster, nodes, timeout, local.security.get());
}

void require_engine(const Config& config) {
  try {
    make_engine(engine_kind(config.collective.engine));
  } catch (const CollectiveError& error) {
    config::Locations(config.file.empty() ? "configuration" : config.file.string())
        .fail_at(0, "collective.engine", error.engine() + ": " + error.reason());
  }
}

void require_plaintext_allowed(const Config& config) {
  const bool secured = config.security.mode == "psk" || config.security.mode == "mtls";
  if (!secured || config.collective.plaintext) return;
  const bool all_loopback = std::ranges::all_of(config.nodes, [](const NodeEntry& node) {
    return std::ranges::all_of(addresses_of(node),
                               [](const std::string& one) { return config::is_loopback(one); });
  });
  if (all_loopback) return;
  config::Locations(config.file.empty() ? "configuration" : config.file.string())
      .fail_at(0, "collective.plaintext",
               "the gradients of backend collective travel unencrypted, which security.mode " +
                   config.security.mode +
                   " does not allow beyond this machine; accepted: plaintext: true");
}

std::string not_together(const std::string& problem) {
  return "the nodes do not come together" + (problem.empty() ? "" : ": " + problem);
}

std::unique_ptr<ProcessGroup> gather_all(const Config& config, LocalNode& local) {
  NoticeBoard board(local.notes, config.self_index(), file_terms(config));
  Patience patience(config.collective.lost_after);
  Assembler assembler(config, local, board, patience);
  assembler.seek(/*admits=*/false);
  auto formed = assembler.take(config.collective.start_wait, [] { return false; });
  if (!formed) throw std::runtime_error(not_together(assembler.problem()));
  return std::move(formed->group);
}

}  // namespace dpwa::collective
