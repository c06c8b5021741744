#include "examples/train/run_state.h"

#include <doctest/doctest.h>

#include "test/examples/error_text.h"

using namespace dpwa;
using namespace dpwa::train;

namespace {

RunIdentity identity() {
  return {"w2",     "mnist", "dirichlet:0.1", "cnn", "adam", 0.1 + 0.2,
          "linear", 32,      ~0ULL,           4,     1,      60000};
}

}  // namespace

TEST_CASE("a run state survives the way through JSON exactly") {
  const RunState state{identity(), {7, 224, 1.0 / 3}, {41.1, ~0ULL - 1, 1234567890123}};
  const RunState back = run_state_from_json(to_json(state));
  CHECK(to_json(back) == to_json(state));
  CHECK(back.identity.lr == state.identity.lr);
  CHECK(back.identity.seed == ~0ULL);
  CHECK(back.position.step == 7);
  CHECK(back.position.samples == 224);
  CHECK(back.position.train_seconds == state.position.train_seconds);
  CHECK(back.adapter.clock == 41.1);
  CHECK(back.adapter.lineage == ~0ULL - 1);
  CHECK(back.adapter.incarnation == 1234567890123);
}

TEST_CASE("text that is no run state throws") {
  CHECK_THROWS(run_state_from_json("{}"));
  CHECK_THROWS(run_state_from_json("{\"identity\""));
}

TEST_CASE("a count that is a fraction or negative throws") {
  const std::string sound = to_json({identity(), {7, 224, 1.5}, {}});
  CHECK_NOTHROW(run_state_from_json(sound));
  for (const std::string count : {"7.5", "-7", "7.0", "\"7\"", "1e30"}) {
    std::string text = sound;
    text.replace(text.find("\"step\":7") + 7, 1, count);
    CAPTURE(text);
    CHECK_THROWS(run_state_from_json(text));
  }
}

TEST_CASE("a checkpoint of another run is refused by the first option that differs") {
  CHECK_NOTHROW(require_same_run(identity(), identity()));
  RunIdentity here = identity();
  std::string expected;
  SUBCASE("model") {
    here.model = "mlp", expected = "--model \"cnn\", this run \"mlp\"";
  }
  SUBCASE("split") {
    here.split = "iid", expected = "--split \"dirichlet:0.1\", this run \"iid\"";
  }
  SUBCASE("rate") {
    here.lr = 0.5, expected = "--lr 0.30000000000000004, this run 0.5";
  }
  SUBCASE("batch") {
    here.batch_size = 64, expected = "--batch-size 32, this run 64";
  }
  SUBCASE("seed") {
    here.seed = 2, expected = "--seed 18446744073709551615, this run 2";
  }
  SUBCASE("cluster") {
    here.nodes = 5, expected = "cluster nodes 4, this run 5";
  }
  SUBCASE("rank") {
    here.rank = 2, expected = "place in the cluster file 1, this run 2";
  }
  SUBCASE("data") {
    here.train_size = 4000, expected = "training samples 60000, this run 4000";
  }
  const std::string why = test::usage_error_of([&] { require_same_run(identity(), here); });
  CAPTURE(why);
  CHECK(test::has(why, "--resume: the checkpoint has " + expected));
}
