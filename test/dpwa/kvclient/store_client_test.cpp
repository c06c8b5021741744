#include <doctest/doctest.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "dpwa/kvclient/operations.h"
#include "dpwa/kvclient/store_client.h"
#include "dpwa/kvstore/optimizer.h"
#include "dpwa/kvstore/shard_engine.h"
#include "dpwa/snapshot/reused_memory.h"
#include "test/support/eventually.h"
#include "test/support/log_file.h"
#include "test/support/store_double.h"

namespace dpwa::kvclient {
namespace {

using kvstore::AnswerKind;
using test::StoreDouble;

// Larger than large_key_elements: in several slices.
constexpr std::size_t large = 1'200'000;

TimePoint patience() {
  return std::chrono::steady_clock::now() + std::chrono::seconds(60);
}

StoreClientOptions options_of(const StoreDouble& server, const std::string& name, bool merged) {
  StoreClientOptions options;
  options.cluster = "test";
  options.self = {name, 7};
  options.servers = {server.address()};
  options.engine.merged = merged;
  options.engine.resend = std::chrono::minutes(1);  // what is sent again is counted again
  return options;
}

std::span<const std::byte> bytes_of(const std::vector<float>& values) {
  return std::as_bytes(std::span(values));
}

std::vector<float> floats(const Outcome& outcome) {
  std::vector<float> result;
  for (const auto& part : outcome.values) {
    REQUIRE(part);
    const std::size_t before = result.size();
    result.resize(before + part->size() / sizeof(float));
    std::memcpy(result.data() + before, part->data(), part->size());
  }
  return result;
}

Outcome outcome_of(StoreClient& client, Ticket ticket) {
  auto outcome = client.wait(ticket, patience());
  REQUIRE(outcome);
  return *outcome;
}

kvstore::Bytes sgd(double rate) {
  auto options = kvstore::default_options(kvstore::OptimizerKind::sgd);
  options.learning_rate = rate;
  const auto form = kvstore::encode(options);
  return {form.begin(), form.end()};
}

// Two steps of `workers` workers with gradients 1, 2, ...: the value that each ends with.
std::vector<float> train(StoreClient& client, std::size_t index, std::size_t size,
                         const std::function<void(std::uint64_t)>& before_step = {}) {
  client.join();
  const auto first = client.wait_joined(patience());
  REQUIRE(first);
  const std::vector<float> weights(size, 10.0F);
  const kvstore::ValueSpec spec{DType::float32, {size}};
  CHECK(outcome_of(client, client.init("w", spec, bytes_of(weights))).kind == AnswerKind::created);
  std::vector<float> value = floats(outcome_of(client, client.pull("w", *first)));
  CHECK(value == weights);
  const std::vector<float> gradient(size, static_cast<float>(index + 1));
  for (std::uint64_t step = *first; step < *first + 2; ++step) {
    if (before_step) before_step(step);
    client.at(step, true);
    const auto outcome = outcome_of(
        client, client.push("w", bytes_of(gradient),
                            {step, 1.0, kvstore::Merge::mean, /*wants_value=*/true, sgd(1)}));
    CHECK_FALSE(outcome.left_out);
    CHECK(outcome.kind == AnswerKind::counted);
    value = floats(outcome);
    client.at(step + 1, false);
  }
  return value;
}

}  // namespace

TEST_CASE("a push of two workers is their mean, for a small and for a cut key") {
  for (const std::size_t size : {std::size_t{3}, large}) {
    StoreDouble server(kvstore::rules_of(KvstoreType::dist_sync), 2);
    test::at_once(2, [&](std::size_t i) {
      StoreClient client(options_of(server, "w" + std::to_string(i + 1), true));
      // 10 - 2 x mean(1, 2)
      CHECK(train(client, i, size) == std::vector<float>(size, 7.0F));
      CHECK(client.workers().size() == 2);
      CHECK(client.traffic().sent == 2 * size * sizeof(float));
    });
  }
}

TEST_CASE("a connection that breaks is made again, and no push counts twice") {
  StoreDouble server(kvstore::rules_of(KvstoreType::dist_sync), 1);
  StoreClient client(options_of(server, "w1", true));
  const auto value = train(client, 0, large, [&](std::uint64_t) { server.cut(); });
  CHECK(value == std::vector<float>(large, 8.0F));
}

TEST_CASE("dist_async updates at each push, and a push without an optimizer is refused in words") {
  StoreDouble server(kvstore::rules_of(KvstoreType::dist_async), 1);
  StoreClient client(options_of(server, "w1", false));
  CHECK(train(client, 0, 3) == std::vector<float>(3, 8.0F));
  const std::vector<float> gradient(3, 1);
  const auto refused = outcome_of(client, client.push("w", bytes_of(gradient), {2}));
  CHECK(refused.kind == AnswerKind::no_optimizer);
  CHECK(refused.problem == "key 'w', worker w1: an update at each push needs an optimizer");
  const auto next = outcome_of(
      client, client.push("w", bytes_of(gradient), {2, 1, kvstore::Merge::sum, true, sgd(1)}));
  CHECK(floats(next) == std::vector<float>(3, 7.0F));
}

TEST_CASE("what compression has held back stays when a push has no weight") {
  StoreDouble server(kvstore::rules_of(KvstoreType::dist_sync), 1);
  StoreClientOptions options = options_of(server, "w1", true);
  options.compression = {kvstore::Compression::two_bit, 0.5};
  StoreClient client(options);
  client.join();
  REQUIRE(client.wait_joined(patience()));
  const std::vector<float> weights(3, 10);
  outcome_of(client, client.init("w", {DType::float32, {3}}, bytes_of(weights)));
  const auto value_after = [&](std::uint64_t step, float gradient, double weight) {
    const std::vector<float> values(3, gradient);
    return floats(
               outcome_of(client, client.push("w", bytes_of(values),
                                              {step, weight, kvstore::Merge::mean, true, sgd(1)})))
        .front();
  };
  CHECK(value_after(0, 1.25F, 1) == 9.5F);
  // Nothing is updated, so the answer may come without the value.
  const std::vector<float> nothing(3, 0);
  outcome_of(client,
             client.push("w", bytes_of(nothing), {1, 0, kvstore::Merge::mean, true, sgd(1)}));
  CHECK(value_after(2, 0, 1) == 9);
}

TEST_CASE("a compressed push without weight sends zeros, whatever its memory held before") {
  StoreDouble server(kvstore::rules_of(KvstoreType::dist_sync), 1);
  StoreClientOptions options = options_of(server, "w1", true);
  options.compression = {kvstore::Compression::fp16, 0};
  StoreClient client(options);
  client.join();
  REQUIRE(client.wait_joined(patience()));
  constexpr std::size_t elements = least_reused_bytes;
  const std::vector<float> values(elements, 1);
  const kvstore::ValueSpec spec{DType::float32, {elements}};
  outcome_of(client, client.init("w", spec, bytes_of(values)));
  for (std::uint64_t step = 0; step < 3; ++step) {
    // The next block of this size is this one, full of NaN.
    ReusedBytes(elements * 2, std::byte{0xff});
    const auto push =
        client.push("w", bytes_of(values), {step, 0, kvstore::Merge::mean, true, sgd(1)});
    CHECK(outcome_of(client, push).kind == AnswerKind::counted);
  }
}

TEST_CASE("a second init and a push of another size are errors at the call") {
  StoreDouble server(kvstore::rules_of(KvstoreType::dist_sync), 1);
  StoreClient client(options_of(server, "w1", true));
  train(client, 0, 3);
  const std::vector<float> two(2, 1);
  CHECK_THROWS_WITH(client.init("w", {DType::float32, {2}}, bytes_of(two)),
                    "key 'w' was initialised before, by worker w1, as float32[3]; now it has "
                    "float32[2]");
  CHECK_THROWS_AS(client.push("w", bytes_of(two), {2}), std::invalid_argument);
}

TEST_CASE("nobody waits for a worker that has left, and it may join again") {
  StoreDouble server(kvstore::rules_of(KvstoreType::dist_sync), 2);
  const std::vector<float> gradient(3, 1);
  test::at_once(2, [&](std::size_t i) {
    StoreClient client(options_of(server, "w" + std::to_string(i + 1), true));
    train(client, i, 3);
    if (i == 1) {
      // It ends once the server knows, not then: that would be the time of this test.
      client.leave(std::chrono::steady_clock::now() + std::chrono::hours(1));
      CHECK(client.workers() == std::vector<std::string>{"w1"});
      CHECK(outcome_of(client, client.push("w", bytes_of(gradient), {9})).left_out);
      client.join();
      CHECK(client.wait_joined(patience()));
      CHECK(client.workers().size() == 2);
      client.leave(patience());
      return;
    }
    // Of steps in which the other one may take part or not.
    for (std::uint64_t step = 2; step < 200; ++step) {
      const auto outcome = outcome_of(
          client,
          client.push("w", bytes_of(gradient), {step, 1, kvstore::Merge::mean, true, sgd(0)}));
      CHECK(outcome.kind == AnswerKind::counted);
    }
  });
}

TEST_CASE("a worker that came late and leaves without a step is no reason for a warning") {
  const test::LogFile log;
  StoreDouble server(kvstore::rules_of(KvstoreType::dist_sync), 1);
  StoreClient client(options_of(server, "w1", true));
  train(client, 0, 3);
  {
    StoreClient late(options_of(server, "w2", true));
    late.join();
    REQUIRE(late.wait_joined(patience()).value_or(0) > 1);
    late.leave(patience());
  }
  CHECK(test::eventually(
      [&] { return log.has("worker 'w2' no longer takes part; it has made no step"); }));
  CHECK_FALSE(log.has(" warning "));
}

TEST_CASE("without a server, joining ends in time and the reason is known") {
  StoreClientOptions options;
  options.cluster = "test";
  options.self = {"w1", 7};
  {
    const StoreDouble gone(kvstore::rules_of(KvstoreType::dist_sync), 1);
    options.servers = {gone.address()};
  }
  StoreClient client(options);
  client.join();
  CHECK_FALSE(
      client.wait_joined(std::chrono::steady_clock::now() + std::chrono::milliseconds(300)));
  REQUIRE(test::eventually([&] { return client.problems().size() == 1; }));
  CHECK(client.problems().front().starts_with("server 's1': "));
}

TEST_CASE("a refusal is for good unless a name is taken and its process may have ended") {
  using Refusal = StoreClient::Refusal;
  const TimePoint first{std::chrono::hours(1)};
  const Duration lost_after = std::chrono::seconds(2);
  CHECK(Refusal{Refusal::Reason::settings, "", first, first}.is_for_good(lost_after));
  CHECK(Refusal{Refusal::Reason::rejected, "", first, first}.is_for_good(lost_after));
  Refusal taken{Refusal::Reason::name_taken, "", first, first};
  CHECK_FALSE(taken.is_for_good(lost_after));
  taken.last = first + 2 * lost_after - Duration(1);
  CHECK_FALSE(taken.is_for_good(lost_after));
  taken.last = first + 2 * lost_after;
  CHECK(taken.is_for_good(lost_after));
}

TEST_CASE("a server that is not there yet is no reason for a warning") {
  const test::LogFile log;
  StoreClientOptions options;
  options.cluster = "test";
  options.self = {"w1", 7};
  {
    const StoreDouble gone(kvstore::rules_of(KvstoreType::dist_sync), 1);
    options.servers = {gone.address()};
  }
  const StoreClient client(options);
  REQUIRE(test::eventually([&] { return log.has("server 's1' is not there yet: "); }));
  CHECK_FALSE(log.has(" warning "));
}

TEST_CASE("memory that the system still reads holds its call up") {
  Operations operations;
  operations.begin(1, Operations::Kind::push, "w", 0, 2, true);
  kvstore::WorkerEngine::Pushed one{{"w", 0}, 0, AnswerKind::counted, 5, nullptr};
  kvstore::WorkerEngine::Pushed two{{"w", 1}, 0, AnswerKind::dropped, 4, nullptr};
  operations.handle(one, /*holds=*/true);
  operations.handle(two, /*holds=*/false);
  CHECK(operations.take_done().empty());
  CHECK(operations.holds_memory());
  operations.release([](const auto& slice, auto) { return slice.index == 0; });
  CHECK(operations.take_done().empty());
  operations.release([](const auto&, auto) { return false; });
  const auto done = operations.take_done();
  REQUIRE(done.size() == 1);
  CHECK(done.front().first == 1);
  CHECK(done.front().second.kind == AnswerKind::dropped);
  CHECK(done.front().second.version == 4);
}

TEST_CASE("a worker that is left out has no call under way but inits") {
  Operations operations;
  operations.begin(1, Operations::Kind::init, "w", 0, 1, false);
  operations.begin(2, Operations::Kind::push, "w", 3, 1, true);
  operations.begin(3, Operations::Kind::pull, "w", 4, 1, true);
  operations.leave_out([](const auto&, auto step) { return step == 3; });
  auto done = operations.take_done();
  REQUIRE(done.size() == 1);
  CHECK(done.front().first == 3);
  CHECK(done.front().second.left_out);
  operations.release([](const auto&, auto) { return false; });
  done = operations.take_done();
  REQUIRE(done.size() == 1);
  CHECK(done.front().first == 2);
  CHECK(operations.size() == 1);
}

}  // namespace dpwa::kvclient
