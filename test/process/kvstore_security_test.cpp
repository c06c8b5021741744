#include <doctest/doctest.h>
#include <signal.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "dpwa/security/key_file.h"
#include "test/process/trained_store.h"
#include "test/support/certificates.h"
#include "test/support/eventually.h"

// Backend kvstore with processes that prove their identity to one another.
namespace dpwa {
namespace {

using Store = test::TrainedStore;

constexpr auto has_read = "reloaded: the files of the security section";

std::size_t count_of(const std::string& text, const std::string& what) {
  std::size_t count = 0;
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

// Each of `changes` writes the files of one round, which all processes then read again. After the
// last one each server in turn is killed and started again, so that only new connections remain.
void change_while_training(const std::string& security,
                           const std::vector<std::function<void()>>& changes) {
  Store store(2, 2, "type: dist_sync, replicas: 1", "security: " + security + "\n");
  store.start_all(900);
  REQUIRE(store.reaches("w1", 20));
  std::size_t rounds = 0;
  for (const auto& change : changes) {
    change();
    ++rounds;
    for (const std::string name : {"s1", "w1", "s2", "w2"}) {
      store.at(name).signal(SIGHUP);
      const auto done = [&] { return count_of(store.log(name), has_read) == rounds; };
      const bool read = test::eventually(done, test::run_patience);
      INFO(store.logs());
      CAPTURE(name);
      REQUIRE(read);
    }
  }
  for (const std::string server : {"s1", "s2"}) {
    store.at(server).signal(SIGKILL);
    store.at(server).wait(test::run_patience);
    store.start_server(server);
    const bool is_whole =
        test::eventually([&] { return store.status_check().empty(); }, test::run_patience);
    INFO(store.status_check());
    INFO(store.logs());
    REQUIRE(is_whole);
    REQUIRE(store.reaches("w2", store.clock("w1") + 20));
  }
  store.check_end({"w1", "w2"});
}

}  // namespace

TEST_CASE("kvstore: the cluster's key is changed while it trains, servers and workers follow") {
  const test::SecretFolder secrets;
  const auto file = secrets.path("cluster.key");
  const Key old_key = new_key();
  const Key young_key = new_key();
  create_private_file(file, key_file_text({old_key}));
  const auto give = [&](const Keys& keys) {
    return [&file, keys] { replace_private_file(file, key_file_text(keys)); };
  };
  change_while_training(
      "{mode: psk, key_file: " + file.string() + "}",
      {give({old_key, young_key}), give({young_key, old_key}), give({young_key})});
}

TEST_CASE("kvstore: the authority is changed while it trains, servers and workers follow") {
  const test::SecretFolder secrets;
  const test::TestAuthority old_one(secrets, "old");
  const test::TestAuthority young_one(secrets, "young");
  const auto trusts = [&](const std::vector<std::string>& authorities) {
    std::string text;
    for (const std::string& each : authorities) text += test::read_text(each);
    secrets.write("ca.pem", text);
  };
  const auto sign_all = [&](const test::TestAuthority& authority) {
    for (const std::string name : {"w1", "w2", "s1", "s2"})
      authority.sign(secrets, name, {name, ""});
  };
  trusts({old_one.file()});
  sign_all(old_one);
  const std::string folder = secrets.path("").string();
  change_while_training("{mode: mtls, ca: " + folder + "ca.pem, cert: \"" + folder +
                            "{name}.pem\", key: \"" + folder + "{name}.key\"}",
                        {[&] { trusts({old_one.file(), young_one.file()}); },
                         [&] { sign_all(young_one); }, [&] { trusts({young_one.file()}); }});
}

TEST_CASE("mtls: certificates of the cluster's authority let servers and workers in, no others") {
  const test::SecretFolder secrets;
  const test::TestAuthority authority(secrets, "ca");
  const test::TestAuthority foreign(secrets, "foreign");
  for (const std::string name : {"w1", "w2", "s1", "s2"}) authority.sign(secrets, name, {name, ""});
  foreign.sign(secrets, "w3", {"w3", ""});
  const std::string folder = secrets.path("").string();
  Store store(3, 2, "type: dist_sync, replicas: 1, min_workers: 2, start_wait_ms: 10s",
              "security: {mode: mtls, ca: " + authority.file() + ", cert: \"" + folder +
                  "{name}.pem\", key: \"" + folder + "{name}.key\"}\n");
  for (const std::string name : {"w1", "w2"}) store.start(name, 200);
  REQUIRE(store.reaches("w1", 20));
  store.start("w3", 200);
  authority.sign(secrets, "s1", {"s1", ""});  // a new one, while the server runs
  store.at("s1").signal(SIGHUP);
  CHECK(store.at("w3").wait(test::run_patience) == 1);
  INFO(store.log("w3"));
  CHECK(store.log("w3").find("does not accept this node's certificate: unknown CA") !=
        std::string::npos);
  store.check_end({"w1", "w2"});
  CHECK(store.log("s1").find("reloaded: the files of the security section") != std::string::npos);
}

}  // namespace dpwa
