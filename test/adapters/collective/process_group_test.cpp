#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <atomic>
#include <future>
#include <thread>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "adapters/collective/engine/process_group.h"
#include "test/adapters/collective/ranks.h"
#include "test/adapters/collective/tested_engine.h"
#include "test/adapters/doctest_with_torch.h"
#include "test/support/eventually.h"

using namespace dpwa::collective;
using namespace dpwa::test;
using namespace std::chrono_literals;

namespace {

GroupOptions member(int rank, int size, std::uint64_t epoch = 0) {
  GroupOptions options = tested_options();
  options.rank = rank;
  options.size = size;
  options.epoch = epoch;
  options.form_timeout = 20s;
  return options;
}

}  // namespace

TEST_CASE("a group knows its place, epoch and engine") {
  with_ranks(
      3,
      [](Rank& rank) {
        CHECK(rank.group->size() == 3);
        CHECK(rank.group->epoch() == 7);
        CHECK(rank.group->engine() == make_engine(tested_engine()).name);
        CHECK(rank.group->c10d()->getRank() == rank.group->rank());
        CHECK(rank.group->c10d()->getSize() == 3);
      },
      [](GroupOptions& options) { options.epoch = 7; });
}

TEST_CASE("a group of one needs nobody") {
  with_ranks(1, [](Rank& rank) {
    const auto sum = rank.operations.allreduce("w", at::full({3}, 2.0));
    CHECK(sum.sum().item<double>() == 6);
  });
}

TEST_CASE("Gloo: an address that is not this machine's cannot form a group") {
  auto options = member(0, 1);
  options.own_address = "192.0.2.1";
  const auto store = c10::make_intrusive<c10d::HashStore>();
  const auto error =
      error_of([&] { ProcessGroup::form(make_engine(EngineKind::gloo), store, options); });
  CHECK(error.reason().find("192.0.2.1") != std::string::npos);
}

TEST_CASE("abort ends an operation that waits for others, there and here") {
  const Engine engine = make_engine(tested_engine());
  const auto store = c10::make_intrusive<c10d::HashStore>();
  std::vector<std::unique_ptr<ProcessGroup>> groups(3);
  at_once(3, [&](std::size_t index) {
    auto options = member(static_cast<int>(index), 3);
    options.timeout = 3600s;  // what does not come from abort() never comes
    groups[index] = ProcessGroup::form(engine, store, options);
  });
  // Rank 0 never takes part. Rank 1 aborts while it waits; rank 2 hears of it from rank 1.
  std::atomic<int> started = 0;
  const auto reduce = [&](int index) {
    return std::async(std::launch::async, [&, index] {
      std::vector<at::Tensor> tensors{at::full({1000}, 1.0)};
      const auto work = groups[static_cast<std::size_t>(index)]->c10d()->allreduce(tensors);
      return error_of([&] {
        groups[static_cast<std::size_t>(index)]->run("allreduce 'w'", [&] {
          ++started;
          work->wait();
        });
      });
    });
  };
  auto first = reduce(1), second = reduce(2);
  REQUIRE(eventually([&] { return started == 2; }));
  groups[1]->abort();
  REQUIRE(first.wait_for(20s) == std::future_status::ready);
  REQUIRE(second.wait_for(20s) == std::future_status::ready);
  const auto own = first.get(), others = second.get();
  CHECK(own.failure() == Failure::lost);
  CHECK(own.reason() == "the group was left while this ran");
  CHECK(others.failure() == Failure::lost);
  CHECK_FALSE(groups[2]->lost_rank().has_value());
  CHECK(groups[1]->aborted());
  const auto later = error_of([&] { Operations(*groups[1]).barrier(); });
  CHECK(later.reason() == "the group was left");
}

TEST_CASE("a group that is shut down with an operation under way ends it") {
  const Engine engine = make_engine(tested_engine());
  if (engine.name != "dpwa") return;
  const auto store = c10::make_intrusive<c10d::HashStore>();
  std::vector<std::unique_ptr<ProcessGroup>> groups(2);
  at_once(2, [&](std::size_t index) {
    auto options = member(static_cast<int>(index), 2);
    options.timeout = 3600s;
    groups[index] = ProcessGroup::form(engine, store, options);
  });
  // Large, so that it begins at once; rank 1 never takes part.
  std::vector<at::Tensor> tensors{at::full({1 << 20}, 1.0)};
  const auto work = groups[0]->c10d()->allreduce(tensors);
  groups[0]->c10d()->shutdown();
  groups[0]->c10d()->abort();
  CHECK_THROWS(work->wait());
}

TEST_CASE("a group with an operation under way can be destroyed without waiting") {
  const Engine engine = make_engine(tested_engine());
  const auto store = c10::make_intrusive<c10d::HashStore>();
  std::vector<std::unique_ptr<ProcessGroup>> groups(2);
  at_once(2, [&](std::size_t index) {
    auto options = member(static_cast<int>(index), 2);
    options.timeout = 3600s;
    groups[index] = ProcessGroup::form(engine, store, options);
  });
  std::vector<at::Tensor> tensors{at::full({1000}, 1.0)};
  const auto work = groups[0]->c10d()->allreduce(tensors);
  groups[0].reset();
  CHECK_THROWS(work->wait());
}

TEST_CASE("the end of one member is known to all the others, without any operation") {
  const Engine engine = make_engine(tested_engine());
  const auto store = c10::make_intrusive<c10d::HashStore>();
  constexpr int size = 6;
  std::atomic<int> told = 0;
  std::vector<std::unique_ptr<ProcessGroup>> groups(size);
  at_once(size, [&](std::size_t index) {
    auto options = member(static_cast<int>(index), size);
    options.on_broken = [&] { ++told; };
    groups[index] = ProcessGroup::form(engine, store, options);
  });
  groups[2].reset();
  CHECK(eventually([&] { return told == size; }));
  for (const int other : {0, 1, 3, 4, 5}) {
    CAPTURE(other);
    CHECK_THROWS_AS(Operations(*groups[static_cast<std::size_t>(other)]).barrier(),
                    CollectiveError);
  }
}

TEST_CASE("members that leave in order break nothing for those who are slower") {
  std::atomic<int> told = 0;
  for (int round = 0; round < 20; ++round) {
    with_ranks(
        5, [](Rank& rank) { rank.operations.allreduce("w", at::full({1000}, 1.0)); },
        [&](GroupOptions& options) { options.on_broken = [&] { ++told; }; });
  }
  CHECK(told == 0);
}

TEST_CASE("after a failed group the same processes form the next one") {
  const Engine engine = make_engine(tested_engine());
  for (std::uint64_t epoch = 0; epoch < 20; ++epoch) {
    const auto store = c10::make_intrusive<c10d::HashStore>();
    std::vector<std::unique_ptr<ProcessGroup>> groups(3);
    at_once(3, [&](std::size_t index) {
      const auto place = member(static_cast<int>(index), 3, epoch);
      groups[index] = ProcessGroup::form(engine, store, place);
      const auto mean = Operations(*groups[index]).allreduce("w", at::full({5}, 1.0 * index));
      CHECK(mean[0].item<double>() == 1);
    });
    groups[0]->abort();
    const auto error = error_of([&] { Operations(*groups[1]).barrier(); });
    CHECK(error.failure() == Failure::lost);
  }
}
