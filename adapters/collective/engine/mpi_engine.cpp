#include <array>
#include <cstdlib>
#include <stdexcept>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "adapters/collective/engine/engine.h"
#include "adapters/collective/engine/error.h"
#include "adapters/collective/engine/mpi_group.h"

namespace dpwa::collective::mpi_engine {

namespace {

constexpr const char* name = "mpi";

// Without mpirun, MPI would form a group of this process alone.
bool started_by_mpirun() {
  constexpr std::array<const char*, 3> signs{"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"};
  for (const char* sign : signs) {
    if (std::getenv(sign) != nullptr) return true;
  }
  return false;
}

class MpiEngine final : public Engine {
 public:
  const std::string& name() const override { return name_; }
  bool has_members() const override { return true; }
  std::string setting() const override { return MpiThread::instance().setting(); }

  Connection form(const c10::intrusive_ptr<c10d::Store>&,
                  const GroupOptions& options) const override {
    const MpiThread& mpi = MpiThread::instance();
    if (mpi.rank() != options.rank || mpi.size() != options.size) {
      throw CollectiveError(
          Failure::usage, "forming a group", name_,
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

 private:
  std::string name_ = mpi_engine::name;
};

}  // namespace

std::string absent() {
  return {};
}

std::unique_ptr<Engine> make() {
  if (!started_by_mpirun())
    throw CollectiveError(Failure::usage, "choosing an engine", name,
                          "mpirun has not started this process; accepted: mpirun -np N PROGRAM, or "
                          "engine dpwa");
  try {
    MpiThread::instance();
  } catch (const std::runtime_error& error) {
    throw CollectiveError(Failure::usage, "choosing an engine", name, error.what());
  }
  return std::make_unique<MpiEngine>();
}

}  // namespace dpwa::collective::mpi_engine
