#include "adapters/collective/gathering.h"

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

void require_engine(const Config& config) {
  try {
    make_engine(engine_kind(config.collective.engine));
  } catch (const CollectiveError& error) {
    fail_at_key(config, "collective.engine", error.engine() + ": " + error.reason());
  }
}

std::string not_together(const std::string& problem) {
  return "the nodes do not come together" + (problem.empty() ? "" : ": " + problem);
}

std::unique_ptr<ProcessGroup> gather_all(const Config& config, LocalProcess& local) {
  NoticeBoard board(local.notes, config.self_index(), file_terms(config));
  AdaptiveTimeout patience(config.collective.lost_after);
  Assembler assembler(config, local, board, patience);
  assembler.seek(/*admits=*/false);
  auto formed = assembler.take(config.collective.start_wait, [] { return false; });
  if (!formed) throw std::runtime_error(not_together(assembler.problem()));
  return std::move(formed->group);
}

}  // namespace dpwa::collective
