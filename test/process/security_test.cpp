#include <doctest/doctest.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>

#include "dpwa/security/key_file.h"
#include "test/process/cluster_run.h"
#include "test/support/eventually.h"

namespace dpwa {
namespace {

using test::ClusterRun;

// Over TCP, as between hosts; every node has a key file of its own.
constexpr const char* settings =
    "gossip: {timeout_ms: 2s, start_wait_ms: 5s, finish_wait_ms: 30s}\n"
    "transport: {same_host: off}\n"
    "security: {mode: psk, key_file: \"{name}.key\"}";

void give_key(const ClusterRun& run, const std::string& name, const Key& key) {
  create_private_file(run.directory() / (name + ".key"), key_file_text({key}));
}

}  // namespace

TEST_CASE("nodes with the cluster's key train together, and one with another stays outside") {
  ClusterRun run(4, settings);
  const Key key = new_key();
  for (const char* name : {"w1", "w2", "w3"}) give_key(run, name, key);
  give_key(run, "w4", new_key());
  run.start_all({"--step-ms", "2"});
  CHECK(run.wait("w4") == 1);
  INFO(run.logs());
  CHECK(run.log("w4").find("'w4' was refused by every node that answered: does not accept this "
                           "cluster key") != std::string::npos);
  CHECK(run.steps("w4").empty());
  const auto trained = [&] {
    return std::ranges::all_of(std::array{"w1", "w2", "w3"},
                               [&](const char* name) { return run.count(name, 0, "mixed") > 20; });
  };
  REQUIRE(test::eventually(trained, test::run_patience));
  const auto status = run.status("w1");
  REQUIRE(status.is_object());
  CHECK(status["security_failures"] > 0);
  run.finish();
  for (const char* name : {"w1", "w2", "w3"}) {
    REQUIRE(run.wait(name) == 0);
    CHECK(run.count(name, 0, "mixed", "w4") == 0);
    CHECK(run.lines(name).back()["participants"] == 3);
    CHECK(run.lines(name).back()["checksum"] == run.lines("w1").back()["checksum"]);
  }
  CHECK(run.log("w1").find("refused a caller: has another cluster key") != std::string::npos);
}

TEST_CASE("a node whose key file others may read does not start, and says how to mend it") {
  ClusterRun run(1, settings);
  give_key(run, "w1", new_key());
  const auto file = run.directory() / "w1.key";
  REQUIRE(::chmod(file.c_str(), 0644) == 0);
  run.start("w1");
  CHECK(run.wait("w1") == 2);
  CHECK(run.log("w1").find("security: " + file.string() +
                           ": may be used by others (mode 0644); remedy: chmod 600 " +
                           file.string()) != std::string::npos);
}

}  // namespace dpwa
