#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "dpwa/config/keys.h"
#include "dpwa/kvserver/store_server.h"
#include "test/dpwa/kvserver/raw_store.h"
#include "test/dpwa/kvserver/store_worker.h"
#include "test/support/eventually.h"
#include "test/support/log_file.h"
#include "test/support/raw_socket.h"

// Workers whose bytes are long on their way, or come in another order than they were sent.

namespace dpwa {
namespace {

using namespace std::chrono_literals;
using test::bytes_of;
using test::introduce_as;
using test::RawSocket;

std::vector<std::byte> beat_of(const Config& config) {
  kvstore::Beat beat;
  beat.joins = true;
  beat.waiting = true;
  beat.settings = config::shared_settings(config, "kvstore");
  return bytes_of(beat, 0);
}

}  // namespace

TEST_CASE("a worker is there as long as the bytes of its push arrive, even without beats") {
  const test::LogFile log;
  Config config = test::store_config(1);
  config.kvstore.lost_after = 1s;
  config.kvstore.min_workers = 2;
  kvserver::StoreServer server(config, "s1");
  server.start();
  RawSocket worker(server.port());
  REQUIRE(introduce_as(worker, "w1"));
  RawSocket silent(server.port());
  REQUIRE(introduce_as(silent, "w2"));
  for (RawSocket* each : {&worker, &silent}) REQUIRE(each->send(beat_of(config)));

  kvstore::Push push;
  push.slice = {kvstore::Key(1), 0};
  push.values.resize(1'000'000);
  const auto frame = bytes_of(push);
  const std::string lost = "worker 'w1' is left out";
  std::size_t sent = 0;
  CHECK(test::eventually([&] {
    REQUIRE(worker.send(std::span(frame).subspan(sent++, 1)));
    return log.has("worker 'w2' is left out");
  }));
  CHECK_FALSE(log.has(lost));
  CHECK(test::eventually([&] { return log.has(lost); }));
}

TEST_CASE("a connection that speaks after its successor takes no answers away with it") {
  const Config config = test::store_config(1);
  kvserver::StoreServer server(config, "s1");
  server.start();
  RawSocket later(server.port());
  {
    RawSocket first(server.port());
    REQUIRE(introduce_as(first, "w1"));
    REQUIRE(introduce_as(later, "w1"));
    REQUIRE(later.send(beat_of(config)));
    REQUIRE(test::read_message<kvstore::EpochNews>(later));
    // What was on its way since before the second connection was made.
    REQUIRE(first.send(bytes_of(kvstore::AskEpoch{}, 0)));
    REQUIRE(test::read_message<kvstore::EpochNews>(first));
  }
  std::atomic<bool> told = false;
  std::thread reader([&] { told = test::read_message<kvstore::EpochNews>(later).has_value(); });
  // Until the server has noticed that the first one is gone.
  CHECK(test::eventually([&] {
    later.send(bytes_of(kvstore::AskEpoch{}, 0));
    return told.load();
  }));
  reader.join();
}

}  // namespace dpwa
