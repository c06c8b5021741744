#include <ATen/ATen.h>
#include <c10/util/Exception.h>
#include <torch/cuda.h>

#include <algorithm>
#include <csignal>
#include <string>
#include <vector>

#include "adapters/collective/engine/engine.h"
#include "adapters/collective/engine/error.h"
#include "adapters/collective/engine/operations.h"
#include "adapters/collective/engine/process_group.h"
#include "adapters/collective/engine/tensor_form.h"
#include "dpwa/collective/signature.h"
#include "test/adapters/collective/ranks.h"
#include "test/adapters/doctest_with_torch.h"

using namespace dpwa::collective;
using dpwa::test::error_of;

namespace {

void own_handler(int) {}

// Restores the disposition of SIGPIPE.
class SavedSigpipe {
 public:
  SavedSigpipe() { sigaction(SIGPIPE, nullptr, &before_); }
  ~SavedSigpipe() { sigaction(SIGPIPE, &before_, nullptr); }

 private:
  struct sigaction before_ {};
};

auto handler_now() {
  struct sigaction now {};
  sigaction(SIGPIPE, nullptr, &now);
  return now.sa_handler;
}

CollectiveError translated(const std::string& message) {
  return translate(std::make_exception_ptr(std::runtime_error(message)), "allreduce 'w'", "gloo");
}

}  // namespace

TEST_CASE("a process that sees no GPU gets one line instead of NCCL") {
  const auto engines = known_engines();
  const auto nccl = std::ranges::find(engines, EngineKind::nccl, &EngineSupport::kind);
  if (!nccl->absent.empty()) {
    MESSAGE("skipped: " << nccl->absent);
    return;
  }
  if (torch::cuda::is_available()) {
    CHECK(make_engine(EngineKind::nccl).name == "nccl");
    return;
  }
  const auto error = error_of([] { make_engine(EngineKind::nccl); });
  CHECK(error.failure() == Failure::usage);
  CHECK(error.reason() == "this process sees no GPU; accepted: engine auto, dpwa or gloo");
}

TEST_CASE("this build has its own engine and Gloo, and says why it lacks the other engines") {
  CHECK(make_engine(EngineKind::gloo).name == "gloo");
  CHECK(make_engine(EngineKind::dpwa).name == "dpwa");
  CHECK(make_engine(EngineKind::automatic).name == "dpwa");
  for (const auto& known : known_engines()) {
    CAPTURE(known.name);
    if (known.absent.empty()) continue;
    const auto error = error_of([&] { make_engine(known.kind); });
    CHECK(error.failure() == Failure::usage);
    CHECK(error.engine() == known.name);
    CHECK(error.reason().starts_with(known.absent + "; accepted: auto, dpwa, gloo"));
  }
}

TEST_CASE("the MPI engine is for processes of mpirun alone") {
  const auto error = error_of([] { make_engine(EngineKind::mpi); });
  CHECK(error.failure() == Failure::usage);
  const bool absent = error.reason().find("without MPI") != std::string::npos;
  const bool refused =
      error.reason() ==
      "mpirun has not started this process; accepted: mpirun -np N PROGRAM, or engine dpwa";
  CHECK((absent || refused));
}

TEST_CASE("an engine's message becomes one plain line") {
  const auto error = translated(
      "[/__w/third_party/gloo/gloo/transport/tcp/pair.cc:553] Connection closed by peer "
      "[127.0.0.1]:19077. This is typically caused by a remote worker crashing.\nframe #0");
  CHECK(std::string(error.what()) ==
        "allreduce 'w' (engine gloo): Connection closed by peer [127.0.0.1]:19077");
  CHECK(error.failure() == Failure::lost);
  CHECK(translated("[/a/b.cc:78] Timed out waiting 20ms for recv operation").failure() ==
        Failure::timeout);
  CHECK(translated("").reason() == "failed without a reason");
}

TEST_CASE("the call stack of a torch error is left out") {
  std::exception_ptr thrown;
  try {
    TORCH_CHECK(false, "no such thing");
  } catch (...) {
    thrown = std::current_exception();
  }
  CHECK(translate(thrown, "broadcast", "gloo").reason() == "no such thing");
}

TEST_CASE("SIGPIPE is ignored where the program has left it alone, and only there") {
  const SavedSigpipe saved;
  signal(SIGPIPE, SIG_DFL);
  ignore_sigpipe();
  CHECK((handler_now() == SIG_IGN));
  signal(SIGPIPE, own_handler);
  ignore_sigpipe();
  CHECK((handler_now() == own_handler));
}

using dpwa::test::Rank;
using dpwa::test::with_ranks;

namespace {

constexpr int size = 3;

ReduceOptions reduce(Reduction reduction) {
  ReduceOptions options;
  options.reduction = reduction;
  return options;
}

}  // namespace

TEST_CASE("a form is read back as it was written") {
  for (const auto type : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kByte, at::kChar,
                          at::kShort, at::kInt, at::kLong, at::kBool}) {
    for (const std::vector<std::int64_t>& shape :
         {std::vector<std::int64_t>{}, {7}, {2, 0, 3}, {4, 5}}) {
      const auto tensor = at::zeros(shape, type);
      CHECK(form_of(zeros_of(form_of(tensor))) == form_of(tensor));
    }
  }
  CHECK(zeros_of("float32 [*, 4]").sizes() == at::IntArrayRef({0, 4}));
  CHECK_FALSE(zeros_of("float32 [3] (not dense)").defined());
  CHECK(zeros_of("float32 [3, 4] on meta").is_meta());
  CHECK(zeros_of(form_of(at::ones({2, 5}, at::kMeta))).sizes() == at::IntArrayRef({2, 5}));
  CHECK_FALSE(zeros_of("float32 [3] on xpu").defined());
  CHECK_FALSE(zeros_of("float32 [3] on nothing").defined());
  CHECK_FALSE(zeros_of("complexfloat [3]").defined());
  CHECK_FALSE(zeros_of("no tensor").defined());
}

TEST_CASE("options of a reduction are read back exactly") {
  ReduceOptions options;
  options.reduction = Reduction::max;
  options.prescale = 1.0 / 3;
  options.postscale = 1e-17;
  options.compression = Compression::bf16;
  const ReduceOptions back = reduce_options_of(text_of(options));
  CHECK((back.reduction == options.reduction));
  CHECK(back.prescale == options.prescale);
  CHECK(back.postscale == options.postscale);
  CHECK((back.compression == options.compression));
  CHECK(text_of({}) == "average prescale 1 postscale 1 compression none");
  CHECK_THROWS_AS(reduce_options_of("mean prescale 1 postscale 1 compression none"),
                  std::invalid_argument);
  CHECK_THROWS_AS(reduce_options_of("sum"), std::invalid_argument);
}

TEST_CASE("ranks that have joined take part with zeros, no rows and open ears until all have") {
  with_ranks(size, [](Rank& rank) {
    const int own = rank.group->rank();
    // Rank 1 has work for 1 round, rank 2 for 2, rank 0 for 4.
    const int rounds = own == 0 ? 4 : own;
    for (int round = 0; round < rounds; ++round) {
      const double at_work = round == 0 ? 3 : round == 1 ? 2 : 1;
      const auto ones = at::ones({2, 3});
      CHECK(at::equal(rank.operations.allreduce("it's 'w'", ones, reduce(Reduction::sum)),
                      ones * at_work));
      CHECK(at::allclose(rank.operations.allreduce("w", ones), ones * at_work / size));
      ReduceOptions halves;
      halves.compression = Compression::fp16;
      halves.postscale = 1.0 / 3;
      CHECK(at::allclose(rank.operations.allreduce("w", ones, halves), ones * at_work / 9, 1e-3));
      ReduceOptions scaled = reduce(Reduction::max);
      scaled.prescale = -2;
      CHECK(at::equal(rank.operations.allreduce("w", ones, scaled), ones * -2));
      for (const auto type : {at::kFloat, at::kHalf, at::kInt, at::kChar, at::kByte, at::kLong}) {
        const auto five = at::full({3}, 5).to(type);
        CHECK(at::equal(rank.operations.allreduce("w", five, reduce(Reduction::min)), five));
        CHECK(at::equal(rank.operations.allreduce("w", five, reduce(Reduction::max)), five));
      }
      const auto both = rank.operations.grouped_allreduce(
          {{"a", ones}, {"b", at::full({4}, 2, at::kDouble)}}, reduce(Reduction::sum));
      CHECK(at::equal(both[1], at::full({4}, 2 * at_work, at::kDouble)));
      const auto rows = rank.operations.allgather("rows", at::full({own + 1, 2}, own));
      CHECK(rows.size(0) == (round == 0 ? 6 : round == 1 ? 4 : 1));
      CHECK(rank.operations.allgather("scalar", at::full({}, own)).numel() == at_work);
      auto told = at::full({5}, own);
      rank.operations.broadcast("told", told, 0);
      CHECK(told.eq(0).all().item<bool>());
      rank.operations.barrier();
    }
    CHECK(rank.operations.join() == 0);
    // All are back.
    CHECK(at::equal(rank.operations.allreduce("w", at::ones({1}), reduce(Reduction::sum)),
                    at::full({1}, 3.0)));
  });
}

TEST_CASE("the last rank to join is told to all, the lowest of several") {
  with_ranks(size, [](Rank& rank) {
    CHECK(rank.operations.join() == 0);  // all at once
    if (rank.group->rank() != 0) rank.operations.barrier();
    CHECK(rank.operations.join() == 1);
    if (rank.group->rank() == 2) rank.operations.barrier();
    CHECK(rank.operations.join() == 2);
  });
}

TEST_CASE("what needs the rank that has joined is an error with one sentence, and all go on") {
  with_ranks(size, [](Rank& rank) {
    const bool joins = rank.group->rank() == 1;
    const auto tensor = at::ones({6, 2});
    const auto failure = [&](const std::function<void()>& call) {
      const auto error = joins ? error_of([&] { rank.operations.join(); }) : error_of(call);
      CHECK((error.failure() == Failure::mismatch));
      return std::string(error.reason());
    };
    CHECK(failure([&] { rank.operations.reducescatter("w", tensor); }) == "rank 1 has joined");
    CHECK(failure([&] { rank.operations.alltoall("w", tensor); }) == "rank 1 has joined");
    CHECK(failure([&] { rank.operations.broadcast("w", tensor, 1); }) == "rank 1 has joined");
    // Those at work differ.
    const auto shape = at::ones({rank.group->rank() + 1});
    CHECK(failure([&] { rank.operations.allreduce("w", shape); }) ==
          "the ranks do not make the same call: ranks 0, 1: 'w' float32 [1]; rank 2: 'w' float32 "
          "[3]");
    rank.operations.join();
  });
}
