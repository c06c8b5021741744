#include <torch/types.h>

#include <memory>
#include <string>

#include "dpwa/security/key_file.h"
#include "test/adapters/doctest_with_torch.h"
#include "test/adapters/kvstore/store_cluster.h"
#include "test/support/certificates.h"
#include "test/support/eventually.h"

// Keys of workers with the class KVStore.
namespace dpwa {
namespace {

using test::StoreCluster;

TEST_CASE("kvstore: a store follows a change of the cluster's key, and refuses a wrong file") {
  const test::SecretFolder secrets;
  const auto file = secrets.path("cluster.key");
  const Key old_key = new_key();
  const Key young_key = new_key();
  create_private_file(file, key_file_text({old_key}));
  SecurityConfig security;
  security.mode = "psk";
  security.key_file = file.string();
  StoreCluster cluster(
      1, KvstoreType::dist_sync, 2, [](KvstoreConfig& kvstore) { kvstore.replicas = 1; }, security);
  KVStore store(cluster.config_of("w1"));
  const auto x = torch::zeros({3});
  store.init("w", x);

  secrets.write("cluster.key", "no key\n");
  CHECK_THROWS_AS(store.reload_security(), KVStoreError);
  for (const Keys& keys : {Keys{old_key, young_key}, Keys{young_key, old_key}, Keys{young_key}}) {
    replace_private_file(file, key_file_text(keys));
    for (const auto& server : cluster.servers) CHECK_FALSE(server->reload_security());
    store.reload_security();
  }
  // A server that is started again has the young key only.
  const auto dead = [&] { return store.num_dead_node(std::chrono::milliseconds(0)); };
  cluster.servers[0].reset();
  CHECK(test::eventually([&] { return dead() == 1; }));
  cluster.start_again(0);
  CHECK(test::eventually([&] { return dead() == 0; }));
  store.push("w", torch::ones_like(x));
  auto out = torch::zeros_like(x);
  store.pull("w", out);
  CHECK(torch::equal(out, torch::ones_like(x)));
}

}  // namespace
}  // namespace dpwa
