#include "adapters/collective/engine/engine.h"

#include <c10/util/Exception.h>

#include <csignal>

#include "adapters/collective/engine/error.h"
#include "adapters/collective/engine/process_group.h"
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
