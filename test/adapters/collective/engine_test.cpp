#include "adapters/collective/engine/engine.h"

#include <c10/util/Exception.h>

#include <csignal>

#include "adapters/collective/engine/error.h"
#include "adapters/collective/engine/process_group.h"
#include "adapters/collective/engine/signature.h"
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

Signature reduce(const std::string& form) {
  return {"allreduce sum", {{"w", form}, {"b", "float32 [3]"}}, {}};
}

}  // namespace

TEST_CASE("this build has Gloo, and says why it lacks the other engines") {
  CHECK(make_engine(EngineKind::gloo)->name() == "gloo");
  CHECK(make_engine(EngineKind::automatic)->name() == "gloo");
  for (const auto& known : known_engines()) {
    CAPTURE(known.name);
    if (known.absent.empty()) continue;
    const auto error = error_of([&] { make_engine(known.kind); });
    CHECK(error.failure() == Failure::usage);
    CHECK(error.engine() == known.name);
    CHECK(error.reason().starts_with(known.absent + "; accepted: auto, gloo"));
  }
}

TEST_CASE("the MPI engine is for processes of mpirun alone") {
  const auto error = error_of([] { make_engine(EngineKind::mpi); });
  CHECK(error.failure() == Failure::usage);
  const bool absent = error.reason().find("without MPI") != std::string::npos;
  const bool refused =
      error.reason() ==
      "mpirun has not started this process; accepted: mpirun -np N PROGRAM, or engine gloo";
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

TEST_CASE("equal signatures agree") {
  const auto text = reduce("float32 [3, 4]").text();
  CHECK_FALSE(disagreement({text, text, text}).has_value());
  CHECK(hash_of(text) != hash_of(reduce("float32 [3, 5]").text()));
}

TEST_CASE("a disagreement names the tensor, and by rank what each has") {
  const auto usual = reduce("float32 [3, 4]").text(), other = reduce("float32 [3, 5]").text();
  CHECK(disagreement({usual, other, usual}).value() ==
        "the ranks do not make the same call: ranks 0, 2: 'w' float32 [3, 4]; rank 1: 'w' float32 "
        "[3, 5]");
}

TEST_CASE("other operations and other numbers of tensors disagree") {
  const auto usual = reduce("float32 [3]").text();
  CHECK(disagreement({usual, Signature{"barrier", {}, {}}.text()}).value() ==
        "the ranks do not make the same call: rank 0: allreduce sum; rank 1: barrier");
  auto longer = reduce("float32 [3]");
  longer.entries.push_back({"c", "int64 []"});
  CHECK(disagreement({usual, longer.text()}).value() ==
        "the ranks do not make the same call: rank 0: nothing; rank 1: 'c' int64 []");
}

TEST_CASE("what one rank has wrong comes before what follows from it") {
  auto wrong = reduce("bool [3]");
  wrong.problem = "'w': bool cannot be added";
  CHECK(disagreement({reduce("float32 [3]").text(), wrong.text()}).value() ==
        "rank 1: 'w': bool cannot be added");
}

TEST_CASE("a line end in a name cannot pose as another entry") {
  const Signature forged{"sum", {{"w\n'b' float32 [3]", "x"}}, {}};
  CHECK(forged.text() == "sum\n'w 'b' float32 [3]' x\n");
}
