#include "adapters/kvstore/push_memory.h"

#include <torch/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
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

std::uintptr_t address(const at::Tensor& tensor) {
  return reinterpret_cast<std::uintptr_t>(tensor.data_ptr());
}

TEST_CASE("kvstore: memory for pushes is used again once nobody has it, and grows until then") {
  const test::StoreCluster cluster(1, KvstoreType::dist_sync);
  const Config config = cluster.config_of("w1");
  kvclient::StoreClient client(kvclient::client_options(config, make_security(config)));
  kvstore::PushMemory memory(client);
  const kvstore::ValueSpec spec{DType::float32, {2, large_elements / 2}};
  memory.add("large", spec);
  memory.add("half", {DType::float16, {large_elements}});
  memory.add("small", {DType::float32, {10}});
  CHECK_FALSE(memory.take("large").defined());  // no server has answered
  client.join();
  const auto ticket = client.init("small", {DType::float32, {1}}, std::vector<std::byte>(4));
  REQUIRE(client.wait(ticket, std::chrono::steady_clock::now() + std::chrono::seconds(60)));
  REQUIRE(client.uses_memory());
  CHECK_FALSE(memory.take("small").defined());
  CHECK_FALSE(memory.take("unknown").defined());
  std::optional<at::Tensor> first = memory.take("large");
  CHECK(first->sizes() == at::IntArrayRef({2, large_elements / 2}));
  CHECK((first->scalar_type() == at::kFloat));
  const at::Tensor half = memory.take("half");
  CHECK((half.scalar_type() == at::kHalf));
  half.fill_(2);
  first->fill_(1);
  at::Tensor second = memory.take("large");
  second.fill_(3);
  const std::uintptr_t data = address(*first);
  CHECK(address(second) != data);
  CHECK(first->eq(1).all().item<bool>());
  CHECK(half.eq(2).all().item<bool>());
  first.reset();
  CHECK(address(memory.take("large")) == data);
  CHECK(address(memory.take("large")) == data);
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
