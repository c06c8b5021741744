#include "adapters/collective/engine/engine.h"

#include "adapters/collective/engine/error.h"

namespace dpwa::collective {

std::vector<EngineSupport> known_engines() {
  return {{EngineKind::dpwa, "dpwa", dpwa_engine::absent()},
          {EngineKind::gloo, "gloo", gloo_engine::absent()},
          {EngineKind::nccl, "nccl", nccl_engine::absent()},
          {EngineKind::mpi, "mpi", mpi_engine::absent()}};
}

std::unique_ptr<Engine> make_engine(EngineKind kind) {
  if (kind == EngineKind::automatic) kind = EngineKind::dpwa;
  std::unique_ptr<Engine> engine;
  switch (kind) {
    case EngineKind::automatic:
    case EngineKind::dpwa:
      engine = dpwa_engine::make();
      break;
    case EngineKind::gloo:
      engine = gloo_engine::make();
      break;
    case EngineKind::nccl:
      engine = nccl_engine::make();
      break;
    case EngineKind::mpi:
      engine = mpi_engine::make();
      break;
  }
  if (engine) return engine;
  std::string wanted, reason, accepted;
  for (const auto& known : known_engines()) {
    if (known.kind == kind) {
      wanted = known.name;
      reason = known.absent;
    } else if (known.absent.empty()) {
      if (known.kind == EngineKind::dpwa) accepted = "auto";
      accepted += (accepted.empty() ? "" : ", ") + known.name;
    }
  }
  throw CollectiveError(Failure::usage, "choosing an engine", wanted,
                        reason + "; accepted: " + (accepted.empty() ? "none" : accepted));
}

}  // namespace dpwa::collective
