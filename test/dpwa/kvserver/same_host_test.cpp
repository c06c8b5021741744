#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dpwa/kvclient/store_client.h"
#include "dpwa/kvserver/store_server.h"
#include "dpwa/snapshot/aligned_buffer.h"
#include "test/dpwa/kvserver/store_worker.h"
#include "test/support/eventually.h"

namespace dpwa {
namespace {

using kvclient::Outcome;
using kvclient::StoreClient;
using SteadyClock = std::chrono::steady_clock;

constexpr std::size_t elements = 50'000;  // large enough to be read where they are

TimePoint patience() {
  return SteadyClock::now() + std::chrono::seconds(60);
}

std::unique_ptr<StoreClient> client_of(const Config& config, const std::string& name,
                                       bool same_host, std::uint64_t incarnation = 7) {
  kvclient::StoreClientOptions options;
  options.cluster = config.cluster;
  options.self = {name, incarnation};
  const NodeEntry& server = config.kvstore.servers.front();
  options.servers = {{server.name, {server.host}, server.port}};
  options.engine.beat = std::chrono::milliseconds(50);
  options.same_host = same_host;
  auto client = std::make_unique<StoreClient>(options);
  client->join();
  return client;
}

std::span<float> floats(AlignedBuffer& buffer) {
  return {reinterpret_cast<float*>(buffer.bytes().data()), buffer.bytes().size() / sizeof(float)};
}

// A worker whose gradient is one number in memory that can be shared.
struct Trainer {
  Trainer(const Config& config, const std::string& name, bool same_host = true)
      : gradient(AlignedBuffer::shared(elements * sizeof(float))),
        value(elements * sizeof(float)),
        client(client_of(config, name, same_host)) {
    client->share(gradient);
  }
  void begin() {
    step = client->wait_joined(patience()).value();
    const kvstore::ValueSpec spec{DType::float32, {elements}};
    REQUIRE(client->wait(client->init(0, spec, value.bytes()), patience()));
  }
  kvclient::Ticket push(float number) {
    std::ranges::fill(floats(gradient), number);
    kvclient::PushTerms terms;
    terms.step = step++;
    terms.wants_value = true;
    terms.into = value.bytes();
    const auto ticket = client->push(0, gradient.bytes(), terms);
    client->at(step, true);
    return ticket;
  }
  Outcome outcome(kvclient::Ticket ticket) {
    auto result = client->wait(ticket, patience());
    REQUIRE(result);
    return *result;
  }
  // Of all elements; none if they differ.
  std::optional<float> number() {
    const auto all = floats(value);
    const bool same = std::ranges::all_of(all, [&](float each) { return each == all.front(); });
    return same ? std::optional(all.front()) : std::nullopt;
  }

  AlignedBuffer gradient;
  AlignedBuffer value;
  std::unique_ptr<StoreClient> client;
  std::uint64_t step = 0;
};

TEST_CASE("workers of one host, of which one does not use memory, get the same sums") {
  Config config = test::store_config(1);
  config.kvstore.min_workers = 2;
  kvserver::StoreServer server(config, "s1");
  server.start();
  Trainer first(config, "w1");
  Trainer second(config, "w2", false);
  first.begin();
  second.begin();
  // The first steps go over TCP, until both ends have mapped what they share.
  for (int step = 0; step < 40; ++step) {
    const auto number = static_cast<float>(step);
    const auto one = first.push(number);
    const auto other = second.push(2 * number);
    CHECK(first.outcome(one).kind == kvstore::AnswerKind::counted);
    CHECK(second.outcome(other).kind == kvstore::AnswerKind::counted);
    CHECK(first.number() == 3 * number);
    CHECK(second.number() == 3 * number);
  }
}

TEST_CASE("a second process of a name is refused, and the worker keeps its connection and memory") {
  Config config = test::store_config(1);
  config.kvstore.min_workers = 2;
  kvserver::StoreServer server(config, "s1");
  server.start();
  Trainer first(config, "w1");
  Trainer other(config, "w2");
  first.begin();
  other.begin();
  const auto step = [&] {
    const auto one = first.push(1);
    const auto two = other.push(2);
    CHECK(first.outcome(one).kind == kvstore::AnswerKind::counted);
    CHECK(other.outcome(two).kind == kvstore::AnswerKind::counted);
    CHECK(first.number() == 3);
  };
  for (int i = 0; i < 10 || !first.client->uses_memory(); ++i) step();
  std::unique_ptr<StoreClient> second;
  for (int life = 0; life < 3; ++life) {
    second.reset();
    second = client_of(config, "w1", true, 8 + static_cast<std::uint64_t>(life));
    int steps = 0;
    while (steps < 30 || !second->refusal()) {
      step();
      ++steps;
      REQUIRE(first.client->problems().empty());
      REQUIRE(first.client->uses_memory());
    }
    CHECK(second->refusal()->problem == "another process takes part as worker 'w1'");
  }
}

TEST_CASE("a push of a worker that left and changed its memory does not spoil the sum") {
  Config config = test::store_config(1);
  config.kvstore.min_workers = 2;
  kvserver::StoreServer server(config, "s1");
  server.start();
  auto leaver = std::make_unique<Trainer>(config, "w1");
  Trainer other(config, "w2");
  leaver->begin();
  other.begin();
  for (int step = 0; step < 10; ++step) {
    const auto one = leaver->push(1);
    const auto two = other.push(1);
    leaver->outcome(one);
    other.outcome(two);
  }
  leaver->push(100);
  // Answers of the server show that it has the push: it is a message before this one.
  REQUIRE(leaver->client->wait(leaver->client->pull(0, leaver->step - 1), patience()));
  leaver->client.reset();
  std::ranges::fill(floats(leaver->gradient), 1e6F);
  const auto last = other.push(3);
  CHECK(other.outcome(last).kind == kvstore::AnswerKind::counted);
  CHECK(other.number() == 3);
}

}  // namespace
}  // namespace dpwa
