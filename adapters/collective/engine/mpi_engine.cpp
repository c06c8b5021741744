#include <array>
#include <cstdlib>
#include <stdexcept>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "adapters/collective/engine/engine.h"
#include "adapters/collective/engine/error.h"
#include "adapters/collective/engine/mpi_group.h"

namespace dpwa::collective {

namespace {

// Without mpirun, MPI would form a group of this process alone.
bool started_by_mpirun() {
  constexpr std::array<const char*, 3> signs{"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"};
  for (const char* sign : signs) {
    if (std::getenv(sign) != nullptr) return true;
  }
  return false;
}

Connection form_mpi(const c10::intrusive_ptr<c10d::Store>&, const GroupOptions& options) {
  const MpiThread& mpi = MpiThread::instance();
  if (mpi.rank() != options.rank || mpi.size() != options.size) {
    throw CollectiveError(
        Failure::usage, "forming a group", "mpi",
        "this node is rank " + std::to_string(options.rank) + " of " +
            std::to_string(options.size) + ", and mpirun has started it as rank " +
            std::to_string(mpi.rank()) + " of " + std::to_string(mpi.size()) +
            "; accepted: one process for each node, in their order, without --name");
  }
  auto backend = c10::make_intrusive<MpiGroup>(options.rank, options.size, options.on_broken);
  backend->setTimeout(options.timeout);
  auto group = c10::make_intrusive<c10d::ProcessGroup>(options.rank, options.size);
  group->setBackend(c10::DeviceType::CPU, c10d::ProcessGroup::BackendType::CUSTOM,
                    c10::intrusive_ptr<c10d::Backend>(backend));
  return {group, [] { return std::nullopt; }};
}

Engine make_mpi() {
  if (!started_by_mpirun())
    throw CollectiveError(Failure::usage, "choosing an engine", "mpi",
                          "mpirun has not started this process; accepted: mpirun -np N PROGRAM, or "
                          "engine dpwa");
  try {
    return {.name = "mpi",
            .has_members = true,
            .setting = MpiThread::instance().setting(),
            .form = form_mpi};
  } catch (const std::runtime_error& error) {
    throw CollectiveError(Failure::usage, "choosing an engine", "mpi", error.what());
  }
}

}  // namespace

EngineSupport mpi_engine() {
  return {EngineKind::mpi, "mpi", "", make_mpi};
}

}  // namespace dpwa::collective
