#include "adapters/collective/gathering.h"

#include <algorithm>
#include <stdexcept>

#include "adapters/collective/assembler.h"
#include "adapters/collective/terms.h"
#include "dpwa/config/config.h"
#include "dpwa/security/security.h"

namespace dpwa::collective {

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

std::vector<StatusAnswer> ask_for_status(const Config& config, const LocalProcess& local,
                                         const std::vector<std::size_t>& places, Duration timeout) {
  std::vector<PeerAddress> nodes;
  for (const std::size_t place : places) nodes.push_back(peer_address(config.nodes[place]));
  return query_status(config.cluster, nodes, timeout, local.security.get());
}

namespace {

// Gloo listens on the own address alone, and connects to those of the others from it.
void require_one_family(const Config& config) {
  const auto address_of = [](const NodeEntry& node) {
    return node.addresses.empty() ? node.host : node.addresses.front();
  };
  const auto is_v6 = [](const std::string& address) {
    return address.find(':') != std::string::npos;
  };
  const auto words_for = [&](const NodeEntry& node) {
    return "'" + node.name + "' has " + address_of(node);
  };
  const auto other = std::ranges::find_if(config.nodes, [&](const NodeEntry& node) {
    return is_v6(address_of(node)) != is_v6(address_of(config.nodes.front()));
  });
  if (other == config.nodes.end()) return;
  fail_at_key(config, "nodes",
              words_for(config.nodes.front()) + ", " + words_for(*other) +
                  "; backend collective cannot connect IPv4 with IPv6; accepted: addresses of one "
                  "family for all nodes");
}

}  // namespace

void require_engine(const Config& config) {
  try {
    make_engine(engine_kind(config.collective.engine));
  } catch (const CollectiveError& error) {
    fail_at_key(config, "collective.engine", error.engine() + ": " + error.reason());
  }
  // The processes of mpirun find each other by themselves.
  if (config.collective.engine != CollectiveEngine::mpi) require_one_family(config);
}

std::string not_together(const std::string& problem) {
  return "the nodes do not come together" + (problem.empty() ? "" : ": " + problem);
}

std::unique_ptr<ProcessGroup> gather_all(const Config& config, LocalProcess& local) {
  NoticeBoard board(local.notes, config.self_index(), file_terms(config));
  Patience patience(config.collective.lost_after);
  Assembler assembler(config, local, board, patience);
  assembler.seek(/*admits=*/false);
  auto formed = assembler.take(config.collective.start_wait, [] { return false; });
  if (!formed) throw std::runtime_error(not_together(assembler.problem()));
  return std::move(formed->group);
}

}  // namespace dpwa::collective
