#include <doctest/doctest.h>

#include <string>

#include "test/dpwa/cli/run_cli.h"
#include "test/support/certificates.h"

namespace dpwa {

TEST_CASE("status refuses a name that neither the file nor the files of its security have") {
  const test::SecretFolder folder;
  const auto plain =
      folder.write("plain.yaml", "nodes: [{name: w1, port: 24001}, {name: w2, port: 24002}]\n");
  const auto refused = test::run_cli({"status", plain.string(), "--name", "w9"});
  CHECK(refused.exit_code == 2);
  CHECK(refused.out.empty());
  CHECK(refused.err ==
        plain.string() + ": nodes: no node is named 'w9'; did you mean 'w1'? accepted: w1, w2\n");
  // A node that joined is not in the file, and has files of its own.
  const auto file = folder.write("cluster.yaml",
                                 "nodes: [{name: w1, port: 24001}]\n"
                                 "security: {mode: psk, key_file: '{name}.key'}\n");
  REQUIRE(test::run_cli({"keygen", "-o", folder.path("w9.key").string()}).exit_code == 0);
  CHECK(test::run_cli({"status", file.string(), "--name", "w9"}).exit_code == 0);
  CHECK(test::run_cli({"status", file.string(), "--name", "w8"}).exit_code == 2);
}

TEST_CASE("status takes the name of a server, whose files it may have") {
  const test::SecretFolder folder;
  const auto file = folder.write("store.yaml",
                                 "backend: kvstore\nnodes: [{name: w1, port: 24001}]\n"
                                 "kvstore: {servers: [{name: s1, port: 24002}]}\n");
  CHECK(test::run_cli({"status", file.string(), "--name", "s1"}).exit_code == 0);
  const auto other = test::run_cli({"status", file.string(), "--name", "s2"});
  CHECK(test::has(other.err, "accepted: w1, s1"));
}

}  // namespace dpwa
