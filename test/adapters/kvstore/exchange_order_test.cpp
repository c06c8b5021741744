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

}  // namespace

TEST_CASE("gradients leave in backward, and values are asked for in the order of forward") {
  const Data data = data_of(64);
  struct Case {
    KvstoreUpdate update;
    bool told;  // the optimizer's numbers, before backward(); else two steps have had the same
  };
  for (const auto [update, told] :
       {Case{KvstoreUpdate::server, true}, Case{KvstoreUpdate::server, false},
        Case{KvstoreUpdate::worker, false}}) {
    CAPTURE(static_cast<int>(update));
    CAPTURE(told);
    const StoreDouble server(kvstore::rules_of(KvstoreType::dist_sync), 1);
    const BackEnd back_end = store(1, 0, [&, update = update](Config& config) {
      NodeEntry entry;
      entry.name = "s1";
      entry.port = server.address().port;
      entry.addresses = {"127.0.0.1"};
      config.kvstore.servers = {entry};
      config.kvstore.update = update;
    });
    run_nodes(back_end, [&, told = told, update = update](Participant& node) {
      Net net(5);
      const auto optimizer = make(optimizers()[0].second, net);
      const auto adapter = make_adapter(node.config, net);
      adapter->start();
      for (int step = told ? 1 : 0; step < 2; ++step) {
        loss_of(net, data, 0, worker_rows).backward();
        adapter->step(*optimizer, {});
        optimizer->zero_grad();
      }
      if (told) adapter->set_optimizer(*optimizer);

      const std::size_t before = server.asked().size();
      bool left_in_backward = false;
      const auto hook = net.first->weight.register_hook([&](const Tensor&) {
        left_in_backward = eventually([&] { return keys_of(server, "push ", before).size() >= 2; },
                                      std::chrono::seconds(20));
      });
      loss_of(net, data, 0, worker_rows).backward();
      CHECK(left_in_backward);
      net.first->weight.remove_hook(hook);
      constexpr std::size_t used = 4;  // of the parameters of this net; two are not
      CHECK(eventually([&] { return keys_of(server, "push ", before).size() == used; },
                       std::chrono::seconds(20)));
      const auto pushes = keys_of(server, "push ", before);
      const std::string kind = update == KvstoreUpdate::worker ? "'(gradient) " : "'";
      const std::size_t pushed = server.asked().size();
      adapter->step(*optimizer, {});
      auto pulls = keys_of(server, "pull ", pushed);
      std::erase_if(pulls, [&](const auto& key) { return std::ranges::count(pushes, key) == 0; });
      CHECK(pulls == std::vector<std::string>{kind + "first.weight'", kind + "first.bias'",
                                              kind + "second.weight'", kind + "second.bias'"});
      adapter->finish();
    });
  }
}

}  // namespace dpwa
