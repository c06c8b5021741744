#include <doctest/doctest.h>

#include "dpwa/config/config.h"
#include "examples/train/run_state.h"
#include "test/support/temporary_directory.h"

using namespace dpwa;
using namespace dpwa::train;

namespace {

RunIdentity identity() {
  return {"w2",     "mnist", "dirichlet:0.1", "cnn", "adam", 0.1 + 0.2,
          "linear", 32,      ~0ULL,           4,     1,      60000};
}

}  // namespace

TEST_CASE("a run state survives the way through JSON exactly") {
  const RunState state{identity(),
                       {7, 224, 1.0 / 3},
                       {41.1, {{"lineage", ~0ULL - 1}, {"incarnation", 1234567890123}}}};
  const RunState back = run_state_from_json(to_json(state));
  CHECK(to_json(back) == to_json(state));
  CHECK(back.identity.lr == state.identity.lr);
  CHECK(back.identity.seed == ~0ULL);
  CHECK(back.position.step == 7);
  CHECK(back.position.samples == 224);
  CHECK(back.position.train_seconds == state.position.train_seconds);
  CHECK(back.adapter.clock == 41.1);
  CHECK(back.adapter.own == state.adapter.own);
}

TEST_CASE("text that is no run state throws") {
  CHECK_THROWS(run_state_from_json("{}"));
  CHECK_THROWS(run_state_from_json("{\"identity\""));
}

TEST_CASE("what a back end keeps is a count of its own name, beside the clock") {
  const std::string sound = to_json({identity(), {}, {2.5, {{"lineage", 7}}}});
  CHECK(test::has(sound, "\"adapter\":{\"clock\":2.5,\"lineage\":7}"));
  const auto changed = [&sound](const std::string& from, const std::string& to) {
    std::string text = sound;
    return text.replace(text.find(from), from.size(), to);
  };
  CHECK(run_state_from_json(changed(",\"lineage\":7", "")).adapter.own.empty());
  CHECK_THROWS(run_state_from_json(changed("\"lineage\":7", "\"lineage\":-7")));
  CHECK_THROWS(run_state_from_json(changed("\"lineage\":7", "\"lineage\":\"7\"")));
  CHECK_THROWS(run_state_from_json(changed("\"clock\":2.5,", "")));
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

TEST_CASE("the position in shared data is kept where there is one") {
  RunState state{identity(), {7, 224, 1.5, 896}, {}};
  CHECK(run_state_from_json(to_json(state)).position.cursor == 896);
  std::string text = to_json(state);
  text.replace(text.find("896"), 3, "-96");
  CHECK_THROWS(run_state_from_json(text));
  state.position.cursor.reset();
  CHECK_FALSE(test::has(to_json(state), "cursor"));
  CHECK_FALSE(run_state_from_json(to_json(state)).position.cursor);
}

TEST_CASE("nodes that share their data resume with other nodes, in another place") {
  RunIdentity here = identity();
  here.nodes = 3;
  here.rank = 0;
  here.shares_data = true;
  CHECK_NOTHROW(require_same_run(identity(), here));
  const RunState shared{identity(), {7, 224, 1.5, 896}, {}};
  CHECK(carried_over(shared, here).cursor == 896);
  CHECK(carried_over(shared, here).samples == 224);
  // From shards of one's own to shared data and back: as much is done.
  const RunState own{identity(), {7, 224, 1.5}, {}};
  CHECK(carried_over(own, here).cursor == 4 * 224);
  CHECK(carried_over(own, identity()).samples == 224);
  CHECK(carried_over(shared, identity()).samples == 224);
  CHECK_FALSE(carried_over(shared, identity()).cursor);
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
    here.nodes = 5;
    expected = "place 2 of 4 in the cluster file, this run of place 2 of 5 in the cluster file";
  }
  SUBCASE("rank") {
    here.rank = 2;
    expected = "place 2 of 4 in the cluster file, this run of place 3 of 4 in the cluster file";
  }
  SUBCASE("shard") {  // of the same number, in another order
    here.by_place = false;
    expected =
        "place 2 of 4 in the cluster file, this run of --shard 2/4 (or a node of --join); "
        "accepted: the same, as samples and their order follow from it";
  }
  SUBCASE("data") {
    here.train_size = 4000, expected = "training samples 60000, this run 4000";
  }
  const std::string why =
      test::message_of<ConfigError>([&] { require_same_run(identity(), here); });
  CAPTURE(why);
  CHECK((test::has(why, "--resume: the checkpoint has " + expected) ||
         test::has(why, "--resume: the checkpoint is of " + expected)));
}
