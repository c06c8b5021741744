#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <torch/types.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "adapters/adapter.h"
#include "test/adapters/kvstore/store_nodes.h"
#include "test/support/eventually.h"
#include "test/support/store_double.h"

// In which order the adapter sends: gradients while backward() produces them, and requests for
// values in the order in which forward() needs them.
namespace dpwa {

using namespace test;

namespace {

// The keys of messages of this kind from `from` on, each once, in order.
std::vector<std::string> keys_of(const StoreDouble& server, const std::string& kind,
                                 std::size_t from) {
  const std::vector<std::string> asked = server.asked();
  std::vector<std::string> keys;
  for (std::size_t i = from; i < asked.size(); ++i) {
    if (!asked[i].starts_with(kind)) continue;
    const std::string key = asked[i].substr(kind.size());
    if (std::ranges::count(keys, key) == 0) keys.push_back(key);
  }
  return keys;
}

// `told`: the optimizer's numbers, before backward(); else two steps have had the same. `early`: so
// many keys leave before the gradient of first.weight, the last one, is there. `keys`: of a step.
template <typename Model>
void check_order(KvstoreUpdate update, bool told, std::size_t early,
                 const std::vector<std::string>& keys) {
  CAPTURE(static_cast<int>(update));
  CAPTURE(told);
  const Data data = data_of(64);
  const StoreDouble server(kvstore::rules_of(KvstoreType::dist_sync), 1);
  const BackEnd back_end = store(1, 0, [&](Config& config) {
    NodeEntry entry;
    entry.name = "s1";
    entry.port = server.address().port;
    entry.addresses = {"127.0.0.1"};
    config.kvstore.servers = {entry};
    config.kvstore.update = update;
  });
  run_nodes(back_end, [&](Participant& node) {
    Model net;
    const auto loss = [&] {
      return torch::cross_entropy_loss(net.forward(data.x.narrow(0, 0, worker_rows)),
                                       data.y.narrow(0, 0, worker_rows));
    };
    torch::optim::SGD optimizer(net.parameters(), 0.1);
    const auto adapter = make_adapter(node.config, net);
    adapter->start();
    for (int step = told ? 1 : 0; step < 2; ++step) {
      loss().backward();
      adapter->step(optimizer, {});
      optimizer.zero_grad();
    }
    if (told) adapter->set_optimizer(optimizer);

    const std::size_t before = server.asked().size();
    bool left_in_backward = false;
    const auto hook = net.first->weight.register_hook([&](const Tensor&) {
      left_in_backward =
          eventually([&] { return keys_of(server, "push ", before).size() >= early; }, patience);
    });
    loss().backward();
    CHECK(left_in_backward);
    net.first->weight.remove_hook(hook);
    CHECK(eventually([&] { return keys_of(server, "push ", before).size() == keys.size(); },
                     patience));
    const auto pushes = keys_of(server, "push ", before);
    const std::size_t pushed = server.asked().size();
    adapter->step(optimizer, {});
    auto pulls = keys_of(server, "pull ", pushed);
    std::erase_if(pulls, [&](const auto& key) { return std::ranges::count(pushes, key) == 0; });
    CHECK(pulls == keys);
    adapter->finish();
  });
}

struct Small : Net {
  Small() : Net(5) {}
};

// The gradients of its two matrices are too large to share a key.
struct Wide : torch::nn::Module {
  Wide() { to(training_device()); }
  Tensor forward(const Tensor& x) { return second(torch::tanh(first(x))); }
  torch::nn::Linear first = register_module("first", torch::nn::Linear(6, 2000));
  torch::nn::Linear second = register_module("second", torch::nn::Linear(2000, 3));
};

}  // namespace

TEST_CASE("gradients leave in backward, and values are asked for in the order of forward") {
  const std::vector<std::string> keys{"'first.weight'", "'first.bias'", "'second.weight'",
                                      "'second.bias'"};  // two more of this net are not used
  check_order<Small>(KvstoreUpdate::server, /*told=*/true, 2, keys);
  check_order<Small>(KvstoreUpdate::server, /*told=*/false, 2, keys);
  check_order<Wide>(
      KvstoreUpdate::worker, /*told=*/false, 1,
      {"'(gradient) first.weight'", "'(gradients from) first.bias'", "'(gradient) second.weight'"});
}

}  // namespace dpwa
