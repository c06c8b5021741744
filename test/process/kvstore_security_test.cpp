#include <doctest/doctest.h>
#include <signal.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "test/process/trained_store.h"
#include "test/support/certificates.h"
#include "test/support/eventually.h"

// Backend kvstore with processes that prove their identity to one another.
namespace dpwa {
namespace {

using Store = test::TrainedStore;

constexpr auto has_read = "reloaded: the files of the security section";

}  // namespace

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
  Store store(2, 2, "type: dist_sync, replicas: 1",
              "security: {mode: mtls, ca: " + folder + "ca.pem, cert: \"" + folder +
                  "{name}.pem\", key: \"" + folder + "{name}.key\"}\n");
  store.start_all(900);
  REQUIRE(store.reaches("w1", 20));
  const std::vector<std::function<void()>> changes{
      [&] { trusts({old_one.file(), young_one.file()}); }, [&] { sign_all(young_one); },
      [&] { trusts({young_one.file()}); }};
  std::size_t rounds = 0;
  for (const auto& change : changes) {
    change();
    ++rounds;
    for (const std::string name : {"s1", "w1", "s2", "w2"}) {
      store.at(name).signal(SIGHUP);
      const auto done = [&] { return test::count_of(store.log(name), has_read) == rounds; };
      const bool read = test::eventually(done, test::run_patience);
      INFO(store.logs());
      CAPTURE(name);
      REQUIRE(read);
    }
  }
  // Each server in turn is killed and started again, so that only new connections remain.
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

}  // namespace dpwa
