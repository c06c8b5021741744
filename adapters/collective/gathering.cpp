#include "adapters/collective/gathering.h"

#include <stdexcept>
#include <utility>

#include "adapters/collective/group_former.h"
#include "adapters/collective/terms.h"
#include "dpwa/config/config.h"
#include "dpwa/group/group_node.h"

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

std::shared_ptr<ProcessGroup> gather_all(const Config& config, LocalProcess& local,
                                         std::shared_ptr<group::Inbox> inbox) {
  NoticeBoard board(local.notes, config.self_index());
  group::GroupNode node(config, local, std::move(inbox), file_terms(config));
  GroupFormer former(config, local, node, board);
  former.seek();
  auto formed = former.take(config.collective.start_wait, [] { return false; });
  node.forget();
  if (!formed) throw std::runtime_error(not_together(former.problem()));
  return std::move(formed->group);
}

}  // namespace dpwa::collective
