#include "adapters/kvstore/kvstore.h"

#include <torch/optim/sgd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <fstream>
#include <limits>

#include "adapters/kvstore/local_store.h"
#include "test/adapters/doctest_with_torch.h"
#include "test/adapters/kvstore/pulled.h"
#include "test/support/temporary_directory.h"

namespace dpwa {
namespace {

using kvstore::Compression;
using kvstore::default_options;
using kvstore::OptimizerKind;
using test::pulled;

const char* const all_types[] = {"local_update_cpu", "local_allreduce_cpu",
                                 "local_allreduce_device"};

TEST_CASE("kvstore: names of types and their aliases") {
  for (const char* const type : all_types) CHECK(KVStore(type).type() == type);
  CHECK(KVStore("local").type() == "local_update_cpu");
  CHECK(KVStore("device").type() == "local_allreduce_device");
  CHECK_THROWS_WITH_AS(KVStore("dist_sync"),
                       "type 'dist_sync' needs servers: KVStore(config), where the cluster file "
                       "has kvstore.servers and kvstore.type; without servers: local_update_cpu, "
                       "local, local_allreduce_cpu, local_allreduce_device, device",
                       KVStoreError);
  CHECK_THROWS_WITH_AS(KVStore("locl"),
                       "unknown type of store 'locl'; known: local_update_cpu, local, "
                       "local_allreduce_cpu, local_allreduce_device, device",
                       KVStoreError);
  KVStore store;
  CHECK(store.rank() == 0);
  CHECK(store.num_workers() == 1);
  CHECK(store.num_dead_node() == 0);
  store.barrier();
}

TEST_CASE("kvstore: what init sets is pulled, and stays when the tensor changes") {
  for (const char* const type : all_types) {
    KVStore store(type);
    auto value = torch::arange(6.f).view({2, 3});
    store.init("w", value);
    value.zero_();
    CHECK(torch::equal(pulled(store, "w", value), torch::arange(6.f).view({2, 3})));
  }
}

TEST_CASE("kvstore: without an updater the sum of the devices replaces the value") {
  for (const char* const type : all_types) {
    KVStore store(type);
    store.init(3, torch::ones({2, 3}));
    store.push(3, {torch::full({2, 3}, 2.f), torch::full({2, 3}, 3.f), torch::full({2, 3}, 4.f)},
               -7);
    auto a = torch::zeros({2, 3}), b = torch::zeros({2, 3});
    CHECK(store.pull(3, {a, b}, 5) == 1);
    CHECK(torch::equal(a, torch::full({2, 3}, 9.f)));
    CHECK(torch::equal(b, a));
    store.push(3, torch::ones({2, 3}));
    CHECK(store.pull(3, a) == 2);
    CHECK(torch::equal(a, torch::ones({2, 3})));
  }
}

TEST_CASE("kvstore: a model on a device stays there, whatever the type") {
  using kvstore::local_type_on;
  using enum KvstoreType;
  for (const auto type : {local_update_cpu, local_allreduce_cpu, local_allreduce_device}) {
    CHECK(local_type_on(at::kCPU, type) == type);
    CHECK(local_type_on(at::kCUDA, type) == local_allreduce_device);
  }
  // Tensors of a device that has no memory, so that a copy to the host would fail.
  const auto gradient = torch::ones({2, 3}, torch::kMeta);
  KVStore store("device");
  store.init("w", gradient);
  CHECK_NOTHROW(store.push("w", {gradient, gradient}));
  auto out = torch::empty_like(gradient);
  CHECK(store.pull("w", out) == 1);
  KVStore in_host_memory("local");
  CHECK_THROWS(in_host_memory.init("w", gradient));
}

TEST_CASE("kvstore: lists of keys, and the values of a repeated key are summed") {
  KVStore store;
  const auto x = torch::zeros({2}), y = torch::zeros({3});
  store.init({"a", "b"}, {x, y});
  store.push({"a", "b", "a"}, {x + 1, y + 5, x + 2});
  CHECK(torch::equal(pulled(store, "a", x), x + 3));
  CHECK(torch::equal(pulled(store, "b", y), y + 5));
  auto a = torch::zeros({2}), b = torch::zeros({3}), again = torch::zeros({2});
  const auto versions = store.pull({"a", "b", "a"}, {a, b, again});
  CHECK(versions == KVStore::Versions{1, 1, 1});
  CHECK(torch::equal(again, x + 3));
  const KVStore::TensorLists values = {{x + 1, x + 1}, {y, y + 1}}, outs = {{a}, {b}};
  CHECK(store.pushpull({"a", "b"}, values, outs) == KVStore::Versions{2, 2});
  CHECK(torch::equal(a, x + 2));
  CHECK(torch::equal(b, y + 1));
}

TEST_CASE("kvstore: broadcast is init and pull") {
  KVStore store;
  auto a = torch::zeros({2}), b = torch::zeros({2});
  store.broadcast("w", torch::ones({2}), {a, b});
  CHECK(torch::equal(a, torch::ones({2})));
  CHECK(torch::equal(b, torch::ones({2})));
  CHECK_THROWS_WITH_AS(store.broadcast("v", torch::ones({3}), {a}),
                       "broadcast of key 'v': float32[3] to float32[2]", KVStoreError);
  store.init("v", torch::ones({2}));  // the broadcast has set nothing
}

TEST_CASE("kvstore: fp16 and bf16 are summed in fp32, fp64 in fp64") {
  const auto sum_of = [](at::ScalarType type, double large) {
    KVStore store;
    const auto like = torch::zeros({1}, type);
    store.init(0, like);
    KVStore::Tensors values = {torch::full({1}, large, type)};
    for (int i = 0; i < 8; ++i) values.push_back(torch::ones({1}, type));
    values.push_back(torch::full({1}, -large, type));
    store.push(0, values);
    return pulled(store, 0, like).item<double>();
  };
  CHECK(sum_of(at::kHalf, 4096) == 8);      // 4096 + 1 is 4096 in fp16
  CHECK(sum_of(at::kBFloat16, 1024) == 8);  // so is 1024 + 1 in bf16
  CHECK(sum_of(at::kDouble, 0x1p40) == 8);  // and 2^40 + 1 in fp32
  CHECK(sum_of(at::kFloat, 0x1p20) == 8);
}

TEST_CASE("kvstore: an updater changes the stored value by the sum") {
  for (const char* const type : all_types) {
    KVStore store(type);
    store.init("w", torch::ones({4}, at::kHalf));
    store.set_updater([](const KVStore::Key& key, const at::Tensor& sum, const at::Tensor& stored) {
      CHECK(key == "w");
      CHECK((sum.scalar_type() == at::kFloat));
      stored.add_(sum, -0.5);
    });
    store.push("w", {torch::ones({4}, at::kHalf), torch::full({4}, 2, at::kHalf)});
    CHECK(torch::equal(pulled(store, "w", torch::ones({4}, at::kHalf)),
                       torch::full({4}, -0.5, at::kHalf)));
  }
}

TEST_CASE("kvstore: an optimizer runs in the store, on keys larger than a slice as well") {
  for (const std::int64_t elements : {5, 600'001}) {
    KVStore store;
    torch::manual_seed(1);
    auto weight = torch::randn({elements}).requires_grad_();
    torch::optim::SGD sgd(KVStore::Tensors{weight}, torch::optim::SGDOptions(0.1).momentum(0.9));
    store.set_optimizer(sgd);
    store.init("w", weight);
    for (int step = 0; step < 3; ++step) {
      const auto a = torch::randn({elements}), b = torch::randn({elements});
      store.push("w", {a, b});
      weight.mutable_grad() = a + b;
      sgd.step();
    }
    CHECK(torch::allclose(pulled(store, "w", weight.detach()), weight.detach(), 1e-6, 1e-6));
  }
}

TEST_CASE("kvstore: an optimizer with different parameter groups is refused") {
  KVStore store;
  std::vector<torch::optim::OptimizerParamGroup> groups;
  for (const double rate : {0.1, 0.2}) {
    groups.emplace_back(KVStore::Tensors{torch::zeros({1})},
                        std::make_unique<torch::optim::SGDOptions>(rate));
  }
  const torch::optim::SGD sgd(groups, torch::optim::SGDOptions(0.1));
  CHECK_THROWS_WITH_AS(
      store.set_optimizer(sgd),
      "the optimizer has 2 parameter groups with different options; a store has one set",
      KVStoreError);
}

TEST_CASE("kvstore: sparse pushes, repeated rows are summed, and sparse pulls") {
  KVStore store;
  store.init("table", torch::zeros({5, 2}));
  const auto rows = torch::tensor({{3, 1, 3}});
  const auto values = torch::tensor({{1.f, 2.f}, {3.f, 4.f}, {10.f, 20.f}});
  const auto sparse = torch::sparse_coo_tensor(rows, values, {5, 2});
  store.push("table", {sparse, torch::ones({5, 2})});
  auto expected = torch::ones({5, 2});
  expected[3] += torch::tensor({11.f, 22.f});
  expected[1] += torch::tensor({3.f, 4.f});
  CHECK(torch::equal(pulled(store, "table", expected), expected));

  const auto some = store.row_sparse_pull("table", torch::tensor({3, 0, 3}));
  CHECK(some.is_coalesced());
  CHECK(torch::equal(some.indices(), torch::tensor({{0, 3}})));
  CHECK(torch::equal(some.values()[1], expected[3]));
  CHECK(some.size(0) == 5);
  const auto none = torch::empty({0}, at::kLong);
  CHECK(store.row_sparse_pull("table", none).values().size(0) == 0);
  CHECK_THROWS_WITH_AS(store.row_sparse_pull("table", torch::tensor({1, 5})),
                       "row_sparse_pull of key 'table': rows 1 to 5 of 5", KVStoreError);
  CHECK_THROWS_AS(store.row_sparse_pull("table", torch::ones({2})), KVStoreError);
  CHECK_THROWS_WITH_AS(store.pull("table", sparse),
                       "pull of key 'table': the tensor is sparse; use row_sparse_pull",
                       KVStoreError);
}

TEST_CASE("kvstore: what does not fit is refused by key and both shapes, and changes nothing") {
  KVStore store;
  const auto w = torch::ones({2, 3});
  store.init("w", w);
  CHECK_THROWS_WITH_AS(
      store.init("w", torch::ones({4})),
      "init of key 'w': it was initialised before; the store has float32[2,3], this value is "
      "float32[4]",
      KVStoreError);
  CHECK_THROWS_WITH_AS(
      store.init({"a", "a"}, {w, w}),
      "init of key 'a': it was initialised before; the store has float32[2,3], this value is "
      "float32[2,3]",
      KVStoreError);
  CHECK_THROWS_WITH_AS(store.push("v", w), "push of key 'v': no value has been set by init",
                       KVStoreError);
  CHECK_THROWS_WITH_AS(store.push("w", torch::ones({3, 2})),
                       "push of key 'w': the tensor is float32[3,2], the value of the store "
                       "float32[2,3]",
                       KVStoreError);
  CHECK_THROWS_WITH_AS(store.push("w", {w, w.to(at::kHalf)}),
                       "push of key 'w': the tensor is float16[2,3], the value of the store "
                       "float32[2,3]",
                       KVStoreError);
  CHECK_THROWS_WITH_AS(store.pull("w", torch::ones({2})),
                       "pull of key 'w': the tensor is float32[2], the value of the store "
                       "float32[2,3]",
                       KVStoreError);
  CHECK_THROWS_WITH_AS(store.init("i", torch::ones({2}, at::kLong)),
                       "init of key 'i': it is int64; accepted: float32, float64, float16, "
                       "bfloat16",
                       KVStoreError);
  CHECK_THROWS_WITH_AS(store.init("c", torch::ones({2}, at::kComplexFloat)),
                       "init of key 'c': a tensor of ComplexFloat; accepted: float32, float64, "
                       "float16, bfloat16",
                       KVStoreError);
  CHECK_THROWS_WITH_AS(store.init(7, w), "init of key 7: the keys of this store are texts",
                       KVStoreError);
  CHECK_THROWS_WITH_AS(store.init("", w), "init of key '': the key is empty", KVStoreError);
  CHECK_THROWS_WITH_AS(KVStore().init({1, "x"}, {w, w}),
                       "init of key 'x': a store has integers or texts as keys, not both",
                       KVStoreError);
  CHECK_THROWS_WITH_AS(store.push({"w", "w"}, KVStore::Tensors{w}), "push: 2 keys and 1 values",
                       KVStoreError);
  CHECK_THROWS_WITH_AS(store.push("w", KVStore::Tensors{}), "push of key 'w': no tensor",
                       KVStoreError);
  // Neither is the first key of a list pushed when the second does not fit.
  CHECK_THROWS_AS(store.push({"w", "v"}, KVStore::Tensors{w + 1, w}), KVStoreError);
  CHECK_THROWS_AS(store.pushpull("w", {w + 1}, {torch::ones({2})}), KVStoreError);
  auto out = torch::zeros({2, 3});
  CHECK(store.pull("w", out) == 0);
  CHECK(torch::equal(out, w));
}

TEST_CASE("kvstore: compressed gradients of each device arrive with what they kept back") {
  KVStore store("device");
  store.init("w", torch::zeros({20}));
  store.set_gradient_compression({Compression::two_bit, 0.5});
  const auto a = torch::full({20}, 0.3f), b = torch::full({20}, -1.2f);
  store.push("w", {a, b});
  CHECK(torch::equal(pulled(store, "w", a), torch::full({20}, -0.5f)));
  store.push("w", {a, b});  // residuals 0.3 and -0.7
  CHECK(torch::equal(pulled(store, "w", a), torch::zeros({20})));
  // Set again: what was kept back stays, 0.1 and -0.9 here.
  store.set_gradient_compression({Compression::two_bit, 0.5});
  store.push("w", {a, torch::zeros({20})});
  CHECK(torch::equal(pulled(store, "w", a), torch::full({20}, -0.5f)));
  CHECK_THROWS_AS(store.set_gradient_compression({Compression::two_bit, -1}), KVStoreError);
  auto bad = a.clone();
  bad[3] = std::numeric_limits<float>::quiet_NaN();
  store.push("w", bad);
  CHECK(pulled(store, "w", a)[3].isnan().item<bool>());
}

TEST_CASE("kvstore: states of a key whose last update was by another optimizer are not saved") {
  const test::TemporaryDirectory folder;
  KVStore store;
  store.init(KVStore::Keys{"a", "b"}, {torch::zeros({4}), torch::zeros({4})});
  store.set_optimizer(default_options(OptimizerKind::adam));
  store.push("a", torch::ones({4}));
  store.set_optimizer(default_options(OptimizerKind::rmsprop));
  store.push("b", torch::ones({4}));
  CHECK_THROWS_WITH_AS(store.save_optimizer_states(folder.path() / "states"),
                       "save of key 'a': its last update was by another optimizer", KVStoreError);
  store.push("a", torch::ones({4}));
  store.save_optimizer_states(folder.path() / "states");
  store.load_optimizer_states(folder.path() / "states");
}

TEST_CASE("kvstore: optimizer states are saved and loaded") {
  const test::TemporaryDirectory folder;
  const auto file = folder.path() / "states";
  const auto gradient = [](int step) {
    torch::manual_seed(step);
    return torch::randn({300'000});
  };
  KVStore first, second, third;
  CHECK_THROWS_WITH_AS(first.save_optimizer_states(file),
                       "optimizer states of a store without an optimizer", KVStoreError);
  const auto weight = torch::zeros({300'000});
  first.set_optimizer(default_options(OptimizerKind::adam));
  first.init("w", weight);
  for (int step = 0; step < 3; ++step) first.push("w", gradient(step));
  first.save_optimizer_states(file);
  first.save_optimizer_states(file);  // replaces it

  second.init("w", pulled(first, "w", weight));
  second.load_optimizer_states(file);
  for (KVStore* store : {&first, &second}) store->push("w", gradient(3));
  CHECK(torch::equal(pulled(first, "w", weight), pulled(second, "w", weight)));

  third.set_optimizer(default_options(OptimizerKind::rmsprop));
  third.init("w", weight);
  CHECK_THROWS_WITH_AS(third.load_optimizer_states(file),
                       doctest::Contains("the optimizer states are those of adam, the store has "
                                         "rmsprop with another state"),
                       KVStoreError);
  KVStore other;
  other.init("x", weight);
  CHECK_THROWS_WITH_AS(other.load_optimizer_states(file),
                       doctest::Contains("load of key 'w': no value has been set by init"),
                       KVStoreError);
  std::ofstream(file, std::ios::app) << "x";
  CHECK_THROWS_WITH_AS(third.load_optimizer_states(file), doctest::Contains("is damaged"),
                       KVStoreError);
  CHECK_THROWS_AS(third.load_optimizer_states(folder.path() / "none"), std::runtime_error);
  CHECK_THROWS_AS(first.save_optimizer_states(folder.path() / "none" / "states"),
                  std::runtime_error);
}

}  // namespace
}  // namespace dpwa
