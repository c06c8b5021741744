#include "test/adapters/contract.h"

#include <algorithm>
#include <barrier>
#include <chrono>
#include <memory>

#include "dpwa/kvserver/store_server.h"
#include "dpwa/net/free_ports.h"
#include "test/adapters/doctest_with_torch.h"
#include "test/adapters/test_device.h"
#include "test/support/eventually.h"
#include "test/support/vector_cluster.h"

namespace dpwa::test {
namespace {

using namespace std::chrono_literals;

using Tune = std::function<void(Config&)>;

void null(Config& config) {
  config.backend = Backend::null;
}

void gossip(Config&) {}

Tune collective(OnLostRank on_lost_rank = OnLostRank::stop) {
  return [=](Config& config) {
    config.backend = Backend::collective;
    config.collective.on_lost_rank = on_lost_rank;
  };
}

Tune kvstore(KvstoreType type = KvstoreType::dist_sync,
             KvstoreUpdate update = KvstoreUpdate::automatic) {
  return [=](Config& config) {
    config.backend = Backend::kvstore;
    config.kvstore.type = type;
    config.kvstore.update = update;
    if (type == KvstoreType::dist_ssp) config.kvstore.staleness = 2;
  };
}

class ThreadMeeting final : public Meeting {
 public:
  explicit ThreadMeeting(std::size_t nodes)
      : barrier_(static_cast<std::ptrdiff_t>(nodes)), numbers_(nodes) {}
  void wait_for_all() override { barrier_.arrive_and_wait(); }
  void drop() override { barrier_.arrive_and_drop(); }
  std::span<std::uint64_t> numbers() override { return numbers_; }

 private:
  std::barrier<> barrier_;
  std::vector<std::uint64_t> numbers_;
};

// Waits for its pulls, and blends as the original did.
void patient_gossip(Config& config) {
  config.gossip.step_budget = 50ms;
  config.gossip.blend = BlendMode::lerp;
}

}  // namespace

const std::vector<BackEnd>& back_ends() {
  using enum KvstoreType;
  constexpr auto by_worker = KvstoreUpdate::worker;
  static const std::vector<BackEnd> all = {
      {"null", 1, null},
      {"gossip alone", 1, gossip},
      {"gossip with 2 nodes", 2, gossip},
      {"collective alone", 1, collective()},
      {"collective with 3 nodes", 3, collective()},
      {"collective with 3 nodes that may shrink", 3, collective(OnLostRank::shrink)},
      {"collective with 2 nodes that may train apart", 2, collective(OnLostRank::gossip)},
      {"gossip with 4 nodes that wait for their pulls", 4, patient_gossip},
      {"kvstore alone", 1, kvstore(), 1, true},
      {"kvstore alone, update: worker", 1, kvstore(dist_sync, by_worker), 1},
      {"kvstore with 3 nodes", 3, kvstore(), 2, true},
      {"kvstore with 2 nodes, update: worker", 2, kvstore(dist_sync, by_worker), 2},
      {"kvstore with 2 nodes, dist_async", 2, kvstore(dist_async), 1, true},
      {"kvstore with 2 nodes, dist_ssp", 2, kvstore(dist_ssp), 2, true},
      {"kvstore in one process, update in the store", 1, kvstore(local_update_cpu), 0, true},
      {"kvstore in one process, update by the program", 1, kvstore(local_allreduce_cpu)},
      {"kvstore in one process, averaged on the device", 1, kvstore(local_allreduce_device)},
  };
  return all;
}

bool Participant::same_for_all(std::uint64_t number) {
  meeting_.numbers()[index] = number;
  wait_for_all();
  const auto numbers = meeting_.numbers();
  const bool same = std::ranges::count(numbers, number) == std::ssize(numbers);
  wait_for_all();
  return same;
}

void for_every_back_end(const std::function<void(const BackEnd&, at::Device)>& check) {
  const at::Device device = test_device();
  const NodeProcess* const process = NodeProcess::self();
  for (const BackEnd& back_end : back_ends()) {
    const bool groups = back_end.nodes > 1 && back_end.name.starts_with("collective");
    // contract_processes_test.cpp
    if (process ? !groups || back_end.nodes != process->size() : groups && !device.is_cpu())
      continue;
    INFO(back_end.name << " on " << device.str());
    check(back_end, device);
  }
}

void run_nodes(const BackEnd& back_end, const std::function<void(Participant&)>& body) {
  NodeProcess* const process = NodeProcess::self();
  auto ports =
      process ? process->begin_cluster() : net::free_ports(back_end.nodes + back_end.servers);
  const std::vector<std::uint16_t> server_ports(
      ports.begin() + static_cast<std::ptrdiff_t>(back_end.nodes), ports.end());
  ports.resize(back_end.nodes);
  const auto config_of = [&](std::size_t i) {
    Config config = loopback_config(ports, i);
    config.kvstore.lost_after = 20s;  // on a loaded machine threads stand still for long
    for (std::size_t k = 0; k < server_ports.size(); ++k) {
      NodeEntry server;
      server.name = "s" + std::to_string(k + 1);
      server.port = server_ports[k];
      server.addresses = {"127.0.0.1"};
      server.bind_address = "127.0.0.1";
      config.kvstore.servers.push_back(std::move(server));
    }
    back_end.tune(config);
    return config;
  };
  const auto run = [&](std::size_t i, Meeting& meeting) {
    const Config config = config_of(i);
    Participant node(i, config, meeting);
    body(node);
  };
  if (process) return run(process->index(), *process);
  std::vector<std::unique_ptr<kvserver::StoreServer>> servers;
  for (std::size_t k = 0; k < back_end.servers; ++k) {
    const Config config = config_of(0);
    servers.push_back(
        std::make_unique<kvserver::StoreServer>(config, config.kvstore.servers[k].name));
    servers.back()->start(10s);
  }
  ThreadMeeting meeting(back_end.nodes);
  at_once(back_end.nodes, [&](std::size_t i) { run(i, meeting); });
}

}  // namespace dpwa::test
