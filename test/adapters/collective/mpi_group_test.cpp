#include <ATen/ATen.h>

#include <cstdlib>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "test/adapters/collective/ranks.h"
#include "test/adapters/doctest_with_torch.h"

// with_ranks() for processes that mpirun has started: each is one rank.
namespace dpwa::test {

using namespace collective;

namespace {

int number(const char* variable) {
  const char* value = std::getenv(variable);
  return value == nullptr ? -1 : std::stoi(value);
}

}  // namespace

void with_ranks(int size, const std::function<void(Rank&)>& body,
                const std::function<void(GroupOptions&)>& adjust) {
  GroupOptions options;
  options.rank = number("OMPI_COMM_WORLD_RANK");
  options.size = number("OMPI_COMM_WORLD_SIZE");
  options.timeout = std::chrono::seconds(20);
  if (options.size != size) throw std::logic_error("wants " + std::to_string(size) + " processes");
  if (adjust) adjust(options);
  Rank rank(ProcessGroup::form(make_engine(EngineKind::mpi), nullptr, options));
  body(rank);
  rank.group->leave(std::chrono::seconds(20));
}

}  // namespace dpwa::test

// Run by mpirun: every case on all ranks at once.
using namespace dpwa::collective;
using dpwa::test::error_of;
using dpwa::test::Rank;
using dpwa::test::with_ranks;

namespace {

constexpr int processes = 3;

}  // namespace

TEST_CASE("the engine says how MPI was set up") {
  const auto engine = make_engine(EngineKind::mpi);
  CHECK(engine.name == "mpi");
  CHECK(engine.has_members);
  CHECK(engine.setting.find("Open MPI v") == 0);
  CHECK(engine.setting.find(", all-reduce algorithm 5") != std::string::npos);
}

TEST_CASE("a rank that mpirun knows otherwise is refused") {
  GroupOptions options;
  options.rank = 0;
  options.size = processes + 1;
  const auto error =
      error_of([&] { ProcessGroup::form(make_engine(EngineKind::mpi), nullptr, options); });
  CHECK(error.failure() == Failure::usage);
  CHECK(error.reason().find("mpirun has started it as rank ") != std::string::npos);
}

TEST_CASE("operations end in their order") {
  with_ranks(processes, [](Rank& rank) {
    std::vector<at::Tensor> first{at::full({1'000'000}, rank.group->rank() + 1.0, at::kFloat)};
    std::vector<at::Tensor> second{at::full({3}, rank.group->rank(), at::kLong)};
    const auto one = rank.group->c10d()->allreduce(first);
    const auto two = rank.group->c10d()->broadcast(second, {.rootRank = 2});
    two->wait();
    CHECK(one->isCompleted());
    CHECK(second[0].eq(2).all().item<bool>());
    one->wait();
    CHECK(first[0].eq(6).all().item<bool>());
  });
}

TEST_CASE("a call that MPI does not support is an error, and the group continues") {
  with_ranks(processes, [](Rank& rank) {
    std::vector<at::Tensor> halves{at::ones({4}, at::kHalf)};
    CHECK_THROWS(rank.group->c10d()->allreduce(halves));
    std::vector<at::Tensor> strided{at::ones({4, 4}).t().slice(0, 0, 2)};
    CHECK_THROWS(rank.group->c10d()->allreduce(strided));
    rank.operations.barrier();
  });
}

TEST_CASE("a group that was left refuses operations, and the next one works") {
  for (int round = 0; round < 3; ++round) {
    with_ranks(processes, [](Rank& rank) {
      rank.operations.barrier();
      rank.group->leave(std::chrono::seconds(20));
      const auto error = error_of([&] { rank.operations.barrier(); });
      CHECK(error.failure() == Failure::lost);
    });
  }
}
