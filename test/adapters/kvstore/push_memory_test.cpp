#include "dpwa/kvworker/push_memory.h"

#include <torch/types.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "dpwa/kvclient/client_options.h"
#include "dpwa/security/security.h"
#include "test/adapters/doctest_with_torch.h"
#include "test/adapters/kvstore/store_cluster.h"

// Pushes of the class KVStore that a server of this host reads where they are.

namespace dpwa {
namespace {

constexpr std::int64_t large_elements = 300'000;

TEST_CASE("kvstore: memory for pushes is used again once nobody has it, and grows until then") {
  const test::StoreCluster cluster(1, KvstoreType::dist_sync);
  const Config config = cluster.config_of("w1");
  kvclient::StoreClient client(kvclient::client_options(config, make_security(config)));
  kvstore::PushMemory memory(client);
  const kvstore::ValueSpec spec{DType::float32, {2, large_elements / 2}};
  memory.add("large", spec);
  memory.add("half", {DType::float16, {large_elements}});
  memory.add("small", {DType::float32, {10}});
  CHECK_FALSE(memory.take("large"));  // no server has answered
  client.join();
  const auto ticket = client.init("small", {DType::float32, {1}}, std::vector<std::byte>(4));
  REQUIRE(client.wait(ticket, std::chrono::steady_clock::now() + std::chrono::seconds(60)));
  REQUIRE(client.uses_memory());
  CHECK_FALSE(memory.take("small"));
  CHECK_FALSE(memory.take("unknown"));
  auto first = memory.take("large");
  CHECK(first.bytes.size() == spec.bytes());
  const auto half = memory.take("half");
  CHECK(half.bytes.size() == spec.bytes() / 2);
  std::ranges::fill(half.bytes, std::byte{2});
  std::ranges::fill(first.bytes, std::byte{1});
  const auto second = memory.take("large");
  std::ranges::fill(second.bytes, std::byte{3});
  const std::byte* const data = first.bytes.data();
  CHECK(second.bytes.data() != data);
  CHECK(std::ranges::count(first.bytes, std::byte{1}) == std::ssize(first.bytes));
  CHECK(std::ranges::count(half.bytes, std::byte{2}) == std::ssize(half.bytes));
  first = {};
  CHECK(memory.take("large").bytes.data() == data);
  CHECK(memory.take("large").bytes.data() == data);
}

// Two workers push tensors that they change right after the call, several under way at a time.
void check_sums(bool same_host, at::ScalarType type) {
  CAPTURE(same_host);
  CAPTURE(std::string(c10::toString(type)));
  test::StoreCluster cluster(2, KvstoreType::dist_sync, 2);
  cluster.config.transport.same_host = same_host;
  constexpr int steps = 6;
  cluster.run(2, [&](std::size_t index, KVStore& store) {
    const auto options = torch::TensorOptions(type);
    auto sgd = kvstore::default_options(kvstore::OptimizerKind::sgd);
    sgd.learning_rate = 1;
    store.set_optimizer(sgd);
    auto out = torch::zeros({large_elements}, options);
    store.init("w", out);
    for (int step = 0; step < steps; ++step) {
      std::vector<at::Tensor> devices(2);
      for (at::Tensor& each : devices) each = torch::full({large_elements}, -1.0 - index, options);
      if (step % 2 == 0) devices.pop_back();
      store.push("w", devices);
      for (at::Tensor& each : devices) each.fill_(100);
    }
    store.pull("w", out);
    // In half of the steps one device of each worker, in the other half two.
    CHECK(out.eq(steps / 2 * (1 + 2) * 3).all().item<bool>());
  });
}

TEST_CASE("kvstore: pushes through memory and over TCP add up alike") {
  for (const bool same_host : {true, false}) {
    for (const auto type : {at::kFloat, at::kHalf, at::kDouble}) check_sums(same_host, type);
  }
}

}  // namespace
}  // namespace dpwa
