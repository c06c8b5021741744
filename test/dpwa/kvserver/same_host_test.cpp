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
#include "test/support/log_file.h"

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

// A server and the workers w1 and w2, of which the second may use no memory.
struct Pair {
  explicit Pair(bool second_shares = true)
      : config(config_of_two()),
        server(started(config)),
        first(std::make_unique<Trainer>(config, "w1")),
        second(config, "w2", second_shares) {
    first->begin();
    second.begin();
  }
  // Both push, and both pushes count.
  void step(float of_first, float of_second) {
    const auto one = first->push(of_first);
    const auto two = second.push(of_second);
    CHECK(first->outcome(one).kind == kvstore::AnswerKind::counted);
    CHECK(second.outcome(two).kind == kvstore::AnswerKind::counted);
    CHECK(first->number() == of_first + of_second);
    CHECK(second.number() == of_first + of_second);
  }

  static Config config_of_two() {
    Config config = test::store_config(1);
    config.kvstore.min_workers = 2;
    return config;
  }
  static std::unique_ptr<kvserver::StoreServer> started(const Config& config) {
    auto server = std::make_unique<kvserver::StoreServer>(config, "s1");
    server->start();
    return server;
  }
  const Config config;
  const std::unique_ptr<kvserver::StoreServer> server;
  std::unique_ptr<Trainer> first;
  Trainer second;
};

TEST_CASE("workers of one host, of which one does not use memory, get the same sums") {
  Pair pair(/*second_shares=*/false);
  // The first steps go over TCP, until both ends have mapped what they share.
  for (int step = 0; step < 40; ++step) {
    const auto number = static_cast<float>(step);
    pair.step(number, 2 * number);
  }
}

TEST_CASE("a second process of a name is refused, and the worker keeps its connection and memory") {
  const test::LogFile log;
  Pair pair;
  const StoreClient& first = *pair.first->client;
  for (int i = 0; i < 10 || !first.uses_memory(); ++i) pair.step(1, 2);
  // They are noted in ticks, the last of which may be from before the connection.
  REQUIRE(test::eventually([&] { return first.problems().empty(); }));
  std::unique_ptr<StoreClient> second;
  for (int life = 0; life < 3; ++life) {
    second.reset();
    second = client_of(pair.config, "w1", true, 8 + static_cast<std::uint64_t>(life));
    int steps = 0;
    while (steps < 30 || !second->refusal()) {
      pair.step(1, 2);
      ++steps;
      const std::vector<std::string> problems = first.problems();
      if (!problems.empty()) FAIL(problems.front());
      REQUIRE(first.uses_memory());
    }
    CHECK(second->refusal()->problem == "another process takes part as worker 'w1'");
  }
  CHECK(log.count("not admitted yet: another process takes part as worker 'w1'") == 3);
  CHECK(log.count("connection was closed") == 0);
}

TEST_CASE("a push of a worker that left and changed its memory does not spoil the sum") {
  Pair pair;
  const auto& leaver = pair.first;
  Trainer& other = pair.second;
  for (int step = 0; step < 10; ++step) pair.step(1, 1);
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
