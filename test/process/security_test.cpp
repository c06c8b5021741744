#include <doctest/doctest.h>
#include <signal.h>

#include "dpwa/net/free_ports.h"
#include "dpwa/security/key_file.h"
#include "test/process/cluster_run.h"
#include "test/support/certificates.h"

namespace dpwa {
namespace {

using test::ClusterRun;
using test::holds_in_time;

// Over TCP, as between hosts; every node has a key file of its own.
constexpr const char* settings =
    "gossip: {timeout_ms: 2s, start_wait_ms: 5s, finish_wait_ms: 30s}\n"
    "transport: {same_host: off}\n"
    "security: {mode: psk, key_file: \"{name}.key\"}";

void give_key(const ClusterRun& run, const std::string& name, const Key& key) {
  create_private_file(run.directory() / (name + ".key"), key_file_text({key}));
}

}  // namespace

TEST_CASE("who joins shows the cluster's key, or a certificate that names it") {
  const test::SecretFolder secrets;
  std::string security;
  std::string reason;
  const std::string folder = secrets.path("").string();
  test::TestAuthority authority(secrets, "ca");
  SUBCASE("psk") {
    const Key key = new_key();
    for (const std::string name : {"w1", "w2", "w4"})
      create_private_file(secrets.path(name + ".key"), key_file_text({key}));
    create_private_file(secrets.path("w3.key"), key_file_text({new_key()}));
    reason = "has another cluster key than this process (security.key_file)";
    security = "security: {mode: psk, key_file: \"" + folder + "{name}.key\"}";
  }
  SUBCASE("mtls") {
    const test::TestAuthority foreign(secrets, "foreign");
    for (const std::string name : {"w1", "w2", "w4"}) authority.sign(secrets, name, {name, ""});
    foreign.sign(secrets, "w3", {"w3", ""});
    reason = "does not accept this node's certificate: unknown CA";
    security = "security: {mode: mtls, ca: " + authority.file() + ", cert: \"" + folder +
               "{name}.pem\", key: \"" + folder + "{name}.key\"}";
  }
  ClusterRun run(2, "gossip: {start_wait_ms: 5s, finish_wait_ms: 30s}\n" + security);
  const std::string seed = "127.0.0.1:" + std::to_string(run.ports()[0]);
  run.start_all({"--step-ms", "4"});
  REQUIRE(holds_in_time([&] { return run.count("w2", 0, "mixed", "w1") > 5; }));
  const auto ports = net::free_ports(2);
  const auto join = [&](const std::string& name, std::uint16_t port) {
    run.start(name, {"--step-ms", "4", "--join", seed}, {"DPWA_PORT=" + std::to_string(port)});
  };
  join("w3", ports[0]);
  CHECK(run.wait("w3") == 1);
  INFO(run.log("w3"));
  CHECK(test::has(run.log("w3"), reason));
  CHECK(run.steps("w3").empty());
  join("w4", ports[1]);
  const bool met = holds_in_time([&] {
    return run.count("w4", 0, "mixed", "w2") > 0 && run.count("w2", 0, "mixed", "w4") > 0;
  });
  INFO(run.logs());
  INFO(run.log("w4"));
  CHECK(met);
  CHECK(run.finishes_well());
  CHECK(run.wait("w4") == 0);
  CHECK(run.last_line("w4")["checksum"] == run.last_line("w1")["checksum"]);
}

TEST_CASE("the cluster's key is changed while it trains: add, promote, retire, SIGHUP each time") {
  ClusterRun run(2, settings);
  const Key old_key = new_key();
  const Key young_key = new_key();
  for (const std::string& name : run.names()) give_key(run, name, old_key);
  run.start_all({"--step-ms", "4"});
  REQUIRE(holds_in_time([&] { return run.count("w1", 0, "mixed") > 5; }));
  std::size_t reloads = 0;
  // One node after the other: in between they hold different files.
  const auto give_all = [&](const Keys& keys) {
    ++reloads;
    for (const std::string& name : run.names()) {
      replace_private_file(run.directory() / (name + ".key"), key_file_text(keys));
      run.process(name).signal(SIGHUP);
      REQUIRE(holds_in_time([&] {
        return test::count_of(run.log(name), "reloaded: the files of the sec") == reloads;
      }));
    }
  };
  give_all({old_key, young_key});
  give_all({young_key, old_key});
  give_all({young_key});
  run.process("w2").signal(SIGKILL);  // all its connections go: the next ones use the new key
  REQUIRE(run.wait("w2") == -SIGKILL);
  run.start("w2", {"--step-ms", "4"});
  const std::size_t from = run.steps("w1").size();
  CHECK(holds_in_time([&] { return run.count("w1", from, "mixed", "w2") > 5; }));
  CHECK(run.finishes_well());
  CHECK_FALSE(test::has(run.log("w1"), "another cluster key"));
}

}  // namespace dpwa
