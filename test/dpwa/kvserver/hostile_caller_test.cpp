#include <doctest/doctest.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "dpwa/kvclient/store_client.h"
#include "dpwa/kvserver/store_server.h"
#include "dpwa/security/key_file.h"
#include "test/dpwa/kvserver/raw_store.h"
#include "test/dpwa/kvserver/store_worker.h"
#include "test/support/certificates.h"
#include "test/support/eventually.h"
#include "test/support/log_file.h"
#include "test/support/raw_socket.h"

// What a server of the store makes of callers that break the protocol, or are none of its own.

namespace dpwa {
namespace {

using StoreKey = kvstore::Key;  // security has a Key as well

using test::bytes_of;
using test::introduce_as;
using RawBytes = std::vector<std::byte>;

kvstore::Push some_push() {
  kvstore::Push push;
  push.slice = {StoreKey(1), 0};
  push.values.resize(8);
  return push;
}

}  // namespace

TEST_CASE("a caller that breaks the protocol of the store is dropped, and its workers go on") {
  const test::LogFile log;
  const Config config = test::store_config(1);
  kvserver::StoreServer server(config, "s1");
  server.start();
  test::StoreWorker worker(config, "w1");
  REQUIRE(worker.joined());
  REQUIRE(worker.init(StoreKey(1), {0, 0}));

  std::string name = "w2";
  RawBytes sent;
  bool half = false;
  SUBCASE("noise") {
    sent.assign(64, std::byte{0x5A});
  }
  SUBCASE("a message between servers from a worker") {
    sent = bytes_of(kvstore::Forward{});
  }
  SUBCASE("a ballot of a worker") {
    sent = bytes_of(kvstore::Ballot{});
  }
  SUBCASE("a wrong checksum of the values") {
    sent = bytes_of(some_push());
    sent.back() ^= std::byte{1};
  }
  SUBCASE("a wrong checksum of the head") {
    sent = bytes_of(some_push());
    sent[wire::header_bytes + 5] ^= std::byte{1};
  }
  SUBCASE("half a frame") {
    sent = bytes_of(some_push());
    sent.resize(sent.size() - 3);
    half = true;
  }
  {
    test::RawSocket hostile(server.port());
    REQUIRE(introduce_as(hostile, name));
    REQUIRE(hostile.send(sent));
    if (!half) CHECK(hostile.ended_by_other_side());
  }
  if (!half) CHECK(log.has("connection closed: "));
  CHECK(worker.push(StoreKey(1), 0, {1, 2}, 1));
  CHECK(worker.pull(StoreKey(1), 1) == std::vector<float>{-1, -2});
}

TEST_CASE("a worker that floods its server with requests does not stop the rounds of the others") {
  const Config config = test::store_config(1);
  kvserver::StoreServer server(config, "s1");
  server.start();
  test::StoreWorker worker(config, "w1");
  REQUIRE(worker.joined());
  REQUIRE(worker.init(StoreKey(1), {0, 0}));
  test::RawSocket flood(server.port());
  REQUIRE(introduce_as(flood, "w2"));
  std::vector<std::byte> pulls;
  for (std::uint32_t i = 0; i < 1000; ++i) {
    const auto pull = bytes_of(kvstore::Pull{1, {StoreKey(1), 0}, 0, 0}, i);
    pulls.insert(pulls.end(), pull.begin(), pull.end());
  }
  std::atomic<bool> over = false;
  // It sends as fast as it can, and reads nothing.
  std::thread sender([&] {
    while (!over && flood.send(pulls)) {
    }
  });
  for (std::uint64_t step = 0; step < 50; ++step) {
    CHECK(worker.push(StoreKey(1), step, {1, 2}, 1));
  }
  CHECK(worker.pull(StoreKey(1), 50) == std::vector<float>{-50, -100});
  over = true;
  ::shutdown(flood.descriptor(), SHUT_RDWR);
  sender.join();
}

TEST_CASE("callers of another cluster, with another model or without a place are refused") {
  const test::LogFile log;
  const Config config = test::store_config(1);
  kvserver::StoreServer server(config, "s1");
  server.start();
  test::RawSocket stranger(server.port());
  CHECK_FALSE(introduce_as(stranger, "w3"));
  CHECK(log.has("node 'w3' is not in the cluster file of 's1'"));

  Config other = config;
  other.cluster = "other";
  const test::StoreWorker worker(other, "w1");
  CHECK(test::eventually([&] { return log.has("belongs to cluster 'test', not 'other'"); }));
}

TEST_CASE("a worker that a server turns away learns at once that asking again is of no use") {
  const test::LogFile log;
  const Config config = test::store_config(1);
  kvserver::StoreServer server(config, "s1");
  server.start();
  kvclient::StoreClientOptions options;
  options.cluster = config.cluster;
  options.self = {"w1", 7};
  const NodeEntry& entry = config.kvstore.servers.front();
  options.servers = {{entry.name, {entry.host}, entry.port}};
  std::string problem;
  SUBCASE("another cluster") {
    options.cluster = "other";
    problem = "server 's1': node 's1' belongs to cluster 'test', not 'other'";
  }
  SUBCASE("no worker of the file") {
    options.self.name = "w9";
    problem = "server 's1': node 'w9' is not in the cluster file of 's1'";
  }
  SUBCASE("another server at that port") {
    options.servers.front().name = "s2";
    problem = "server 's2': the node at this address calls itself 's1'";
  }
  kvclient::StoreClient client(options);
  client.join();
  REQUIRE(test::eventually([&] { return client.refusal().has_value(); }));
  const auto refusal = *client.refusal();
  CHECK(refusal.problem == problem);
  CHECK(refusal.is_for_good(std::chrono::hours(1)));
}

TEST_CASE("a worker takes part with the key of the cluster, and not with another one") {
  const test::LogFile log;
  const test::SecretFolder folder;
  Config config = test::store_config(1);
  config.security.mode = "psk";
  config.security.key_file = folder.write("cluster.key", key_file_text({new_key()}).text());
  Config wrong = config;
  wrong.security.key_file = folder.write("wrong.key", key_file_text({new_key()}).text());
  kvserver::StoreServer server(config, "s1");
  server.start();
  {
    const test::StoreWorker intruder(wrong, "w1");
    CHECK(test::eventually([&] { return log.has("cannot reach server 's1'"); }));
  }
  test::StoreWorker worker(config, "w1");
  REQUIRE(worker.joined());
  REQUIRE(worker.init(StoreKey("k"), {1}));
  CHECK(worker.pull(StoreKey("k"), 0) == std::vector<float>{1});
}

}  // namespace dpwa
