#include "adapters/collective/engine/engine.h"

#include "adapters/collective/engine/error.h"

namespace dpwa::collective {

std::vector<EngineSupport> known_engines() {
  return {dpwa_engine(), gloo_engine(), nccl_engine(), mpi_engine()};
}

Engine make_engine(EngineKind kind) {
  if (kind == EngineKind::automatic) kind = EngineKind::dpwa;
  std::string wanted, reason, accepted = "auto";
  for (const auto& known : known_engines()) {
    if (known.kind != kind) {
      if (known.absent.empty()) accepted += ", " + known.name;
      continue;
    }
    if (known.absent.empty()) return known.make();
    wanted = known.name;
    reason = known.absent;
  }
  throw CollectiveError(Failure::usage, "choosing an engine", wanted,
                        reason + "; accepted: " + accepted);
}

}  // namespace dpwa::collective
