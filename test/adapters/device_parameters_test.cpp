#include "adapters/common/device_parameters.h"

#include <torch/nn/module.h>
#include <torch/types.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "dpwa/gossip/gossip.h"
#include "dpwa/gossip/gossip_node.h"
#include "dpwa/gossip/host_parameters.h"
#include "dpwa/net/free_ports.h"
#include "dpwa/snapshot/blocks.h"
#include "test/adapters/doctest_with_torch.h"
#include "test/adapters/fake_accelerator.h"
#include "test/support/eventually.h"
#include "test/support/vector_cluster.h"

namespace dpwa {
namespace {

using namespace std::chrono_literals;
using test::FakeAccelerator;
using torch::nn::Module;

// Pinned memory needs a real accelerator.
class Unpinned : public DeviceParameters {
 public:
  using DeviceParameters::DeviceParameters;
  AlignedBuffer allocate(std::size_t bytes, bool shared) override {
    allocated += bytes;
    return until_copied(AlignedBuffer::of_host(bytes, shared));
  }
  std::size_t allocated = 0;
};

std::shared_ptr<Module> module_of_every_kind(std::uint64_t seed) {
  torch::manual_seed(seed);
  auto module = std::make_shared<Module>("kinds");
  module->register_parameter("f32", torch::randn({33}));
  module->register_parameter("bf16", torch::randn({17}).to(torch::kBFloat16));
  module->register_parameter("f64", torch::randn({5}, torch::kDouble));
  module->register_parameter("frozen", torch::randn({9}), /*requires_grad=*/false);
  module->register_buffer("counter", torch::tensor(static_cast<std::int64_t>(seed)));
  return module;
}

std::vector<std::byte> bytes_of(const FlatParameters& flat) {
  const auto* data = static_cast<const std::byte*>(flat.memory().const_data_ptr());
  return {data, data + flat.manifest().total_bytes()};
}

// Equal but for the last place: torch's lerp rounds in another order.
bool close(const FlatParameters& flat, std::span<const std::byte> expected) {
  for (std::size_t i = 0; i < flat.manifest().regions().size(); ++i) {
    const at::Tensor& region = flat.region(i);
    const auto bytes = expected.subspan(flat.manifest().regions()[i].offset, region.nbytes());
    const auto other = torch::empty_like(region);
    std::ranges::copy(bytes, static_cast<std::byte*>(other.mutable_data_ptr()));
    if (!torch::allclose(region, other, region.scalar_type() == torch::kBFloat16 ? 1e-2 : 1e-5))
      return false;
  }
  return true;
}

Config alone() {
  Config config = test::loopback_config(net::free_ports(1), 0);
  config.gossip.start_wait = 50ms;
  return config;
}

}  // namespace

TEST_CASE("a snapshot leaves on the side stream behind the training stream's copy") {
  const FakeAccelerator device;
  const auto module = module_of_every_kind(1);
  FlatParameters flat(*module);
  DeviceParameters parameters(flat);
  std::vector<std::byte> snapshot(flat.manifest().total_bytes());
  parameters.copy_out(snapshot);
  CHECK(device.log == "record training; wait on side; record side; record side; ");
  CHECK((snapshot == bytes_of(flat)));
}

TEST_CASE("parameters are settled once the side stream's last copy is complete") {
  FakeAccelerator device;
  const auto module = module_of_every_kind(1);
  FlatParameters flat(*module);
  DeviceParameters parameters(flat);
  CHECK(parameters.settled());
  std::vector<std::byte> snapshot(flat.manifest().total_bytes());
  device.complete = false;
  parameters.copy_out(snapshot);
  CHECK_FALSE(parameters.settled());
  device.complete = true;
  CHECK(parameters.settled());
}

TEST_CASE("a second snapshot waits on the device until the memory of the first has left") {
  FakeAccelerator device;
  const auto module = module_of_every_kind(1);
  FlatParameters flat(*module);
  DeviceParameters parameters(flat);
  std::vector<std::byte> snapshot(flat.manifest().total_bytes());
  std::vector<std::byte> next(snapshot.size());
  device.complete = false;
  parameters.copy_out(snapshot);
  const auto first_copy = device.recorded;
  device.log.clear();
  parameters.copy_out(next);
  CHECK(device.log ==
        "wait on training; record training; wait on side; record side; record side; ");
  CHECK(device.awaited == std::vector{1, 2, 4});  // 2: the end of the first copy
  CHECK(parameters.unfinished_copies() == 2);
  CHECK(parameters.landing_is_free());
  device.complete_until = first_copy;
  CHECK(parameters.unfinished_copies() == 1);
  device.complete = true;
  CHECK(parameters.unfinished_copies() == 0);
}

TEST_CASE("device memory is freed only after the side stream has done with it") {
  const FakeAccelerator device;
  const auto module = module_of_every_kind(1);
  FlatParameters flat(*module);
  {
    DeviceParameters parameters(flat);
    std::vector<std::byte> snapshot(flat.manifest().total_bytes());
    parameters.copy_out(snapshot);
    device.log.clear();
  }
  CHECK(device.log == "synchronize; ");
}

TEST_CASE("a node takes four times its model of host memory, as docs/GPU.md says") {
  const FakeAccelerator device;
  const auto module = module_of_every_kind(1);
  FlatParameters flat(*module);
  Unpinned parameters(flat);
  Gossip gossip(alone(), parameters);
  gossip.start();
  CHECK(parameters.allocated == 4 * flat.manifest().total_bytes());
}

TEST_CASE("a node that ends in the middle of a copy waits for it before its memory is freed") {
  FakeAccelerator device;
  const auto module = module_of_every_kind(1);
  FlatParameters flat(*module);
  Unpinned parameters(flat);
  {
    Gossip gossip(alone(), parameters);
    gossip.start();
    device.complete = false;
    gossip.publish([] { return 1.0; });
    device.log.clear();
  }
  CHECK(device.log.starts_with("synchronize; "));
}

TEST_CASE("a blend on a device gives what the blend on the host does, behind its upload") {
  for (const auto& [mode, block] :
       {std::pair{LandingMode::difference, 0u}, std::pair{LandingMode::values, 0u},
        std::pair{LandingMode::difference, 1u}, std::pair{LandingMode::values, 1u}}) {
    const FakeAccelerator device;
    const auto module = module_of_every_kind(1);
    const auto peer = module_of_every_kind(2);
    FlatParameters flat(*module);
    const FlatParameters peer_flat(*peer);
    const Manifest& manifest = flat.manifest();
    DeviceParameters parameters(flat);
    SnapshotStore store(manifest.total_bytes(), 64, [](std::size_t n) { return AlignedBuffer(n); });
    auto writer = store.begin();
    std::ranges::copy(bytes_of(flat), writer->bytes().begin());
    store.publish(std::move(*writer), {});
    Landing landing(manifest, [](std::size_t n) { return AlignedBuffer(n); });
    const ByteRange range = layer_blocks(manifest, block + 1).at(block);
    landing.begin(mode, store.latest(), range);
    const auto peer_bytes = bytes_of(peer_flat);
    landing.consume(range.offset, std::span(peer_bytes).subspan(range.offset, range.length));

    auto expected = bytes_of(flat);
    blend_regions(manifest, range, expected, landing.bytes(), mode, 0.5);
    parameters.blend(landing, 0.5);
    CHECK(device.log == "record side 2; record side 2; wait on training; record training; ");
    if (mode == LandingMode::difference) {
      CHECK((bytes_of(flat) == expected));
    } else {
      CHECK(close(flat, expected));
    }
    CHECK_FALSE((bytes_of(flat) == peer_bytes));

    parameters.blend(landing, 0.5);
    CHECK(device.log.ends_with(
        "wait on side 2; record side 2; record side 2; wait on training; record training; "));
    CHECK(device.awaited == std::vector{1, 3, 4});  // 3: the first blend
    parameters.assign(peer_bytes);
    CHECK((bytes_of(flat) == peer_bytes));
  }
}

TEST_CASE("gossip publishes a device's snapshot and reads its loss when the copy is complete") {
  FakeAccelerator device;
  const auto module = module_of_every_kind(1);
  FlatParameters flat(*module);
  Unpinned parameters(flat);
  const Config config = alone();
  Gossip gossip(config, parameters);
  gossip.start();
  const auto version = [&] { return gossip.node().local().store.latest()->progress().version; };
  const auto before = version();
  int reads = 0;
  const auto loss = [&] {
    ++reads;
    return 4.0;
  };
  device.complete = false;
  gossip.publish(loss);
  gossip.update_wait();
  CHECK(version() == before);
  gossip.publish(loss);  // the copy of the last one is still under way
  CHECK(version() == before);
  CHECK(reads == 0);
  device.complete = true;
  CHECK(gossip.update_wait().clock == 2);
  CHECK(version() == before + 1);
  CHECK(reads == 1);
  CHECK(gossip.node().local().store.latest()->progress().loss == 4.0);
}

TEST_CASE("gossip begins a pull only when the device has done with the snapshot and the landing") {
  FakeAccelerator device;
  const auto ports = net::free_ports(2);
  Config config = test::loopback_config(ports, 1);
  config.gossip.start_wait = 50ms;
  config.gossip.timeout = 100ms;
  const auto module = module_of_every_kind(1);
  FlatParameters flat(*module);
  Unpinned parameters(flat);
  Gossip gossip(config, parameters);
  gossip.start();
  device.complete = false;
  gossip.publish([] { return 1.0; });
  gossip.begin_pull();
  CHECK_FALSE(gossip.node().client().under_way());
  CHECK(gossip.update_wait().outcome == Outcome::pending);
  device.complete = true;
  const auto pulls = gossip.node().local().traffic.pulls_begun.load();
  gossip.update_wait();
  CHECK(gossip.node().local().traffic.pulls_begun.load() == pulls + 1);
}

TEST_CASE("what has landed is blended at the next call after its copy, which holds nothing up") {
  FakeAccelerator device;
  const auto ports = net::free_ports(2);
  const auto module = module_of_every_kind(1);
  FlatParameters flat(*module);
  Unpinned parameters(flat);
  AlignedBuffer peer_memory(flat.manifest().total_bytes());
  HostParameters peer_parameters(flat.manifest(), peer_memory.bytes());
  const Config peer_config = test::loopback_config(ports, 0);
  Gossip peer(peer_config, peer_parameters);
  std::thread peer_start([&peer] { peer.start(); });
  const Config config = test::loopback_config(ports, 1);
  Gossip gossip(config, parameters);
  gossip.start();
  peer_start.join();
  peer.publish([] { return 1.0; });

  gossip.publish([] { return 1.0; });
  gossip.begin_pull();
  CHECK(test::eventually([&] { return !gossip.node().client().under_way(); }));
  device.complete = false;
  const auto before = bytes_of(flat);
  CHECK(gossip.update_wait().outcome == Outcome::pending);  // the copy begins
  CHECK(gossip.update_wait().outcome == Outcome::pending);
  CHECK((bytes_of(flat) == before));
  gossip.begin_pull();  // would land where the blend reads
  CHECK_FALSE(gossip.node().client().under_way());
  device.complete = true;
  const auto pulls = gossip.node().local().traffic.pulls_begun.load();
  const StepReport report = gossip.update_wait();
  CHECK(report.outcome == Outcome::mixed);
  CHECK(report.pulls_ok == 1);
  gossip.update_wait();  // a pull now would be compared with a model from before the blend
  CHECK(gossip.node().local().traffic.pulls_begun.load() == pulls);
  gossip.publish([] { return 1.0; });  // the pull that had to wait begins
  CHECK(gossip.node().local().traffic.pulls_begun.load() > pulls);
}

TEST_CASE("a program a step ahead of its device publishes at each step, and pulls all the same") {
  for (const double pull_probability : {0.0, 1.0}) {
    FakeAccelerator device;
    const auto ports = net::free_ports(2);
    const auto node = [&](std::size_t self) {
      Config config = test::loopback_config(ports, self);
      config.gossip.pull_probability = pull_probability;
      return config;
    };
    const auto module = module_of_every_kind(1);
    FlatParameters flat(*module);
    Unpinned parameters(flat);
    AlignedBuffer peer_memory(flat.manifest().total_bytes());
    HostParameters peer_parameters(flat.manifest(), peer_memory.bytes());
    const Config peer_config = node(0);
    Gossip peer(peer_config, peer_parameters);
    std::thread peer_start([&peer] { peer.start(); });
    const Config config = node(1);
    Gossip gossip(config, parameters);
    gossip.start();
    peer_start.join();

    device.complete = false;
    const auto published = [&] { return gossip.node().local().store.latest()->progress().version; };
    auto length = 1ms;
    // The device ends a step while the program is in the next one. Whether a second copy begins.
    const auto step = [&] {
      const int of_steps_before = device.recorded;
      std::this_thread::sleep_for(length);
      gossip.update_send([] { return 1.0; });
      const bool two = parameters.unfinished_copies() == 2;
      device.complete_until = of_steps_before;
      gossip.update_wait();
      return two;
    };
    // Until steps are certainly longer than the first copy was.
    int in_a_row = 0;
    std::uint64_t at_first = 0;
    CHECK(test::eventually([&] {
      in_a_row = step() ? in_a_row + 1 : 0;
      if (in_a_row == 0) length *= 2;
      if (in_a_row == 1) at_first = published();
      return in_a_row == 6 || (in_a_row > 0 && pull_probability > 0);
    }));
    if (pull_probability == 0) {
      CHECK(published() == at_first + 5);
    } else {
      const auto& begun = gossip.node().local().traffic.pulls_begun;
      const auto before = begun.load();
      CHECK(test::eventually([&] { return step() && begun.load() >= before + 3; }));
    }
    device.complete = true;  // for the end of the test
  }
}

TEST_CASE("a step with a budget waits for the device's copy, and then for the pull") {
  FakeAccelerator device;
  const auto ports = net::free_ports(2);
  const auto node = [&](std::size_t self) {
    Config config = test::loopback_config(ports, self);
    config.gossip.step_budget = config.gossip.timeout;
    return config;
  };
  const auto module = module_of_every_kind(1);
  FlatParameters flat(*module);
  Unpinned parameters(flat);
  AlignedBuffer peer_memory(flat.manifest().total_bytes());
  HostParameters peer_parameters(flat.manifest(), peer_memory.bytes());
  const Config peer_config = node(0);
  Gossip peer(peer_config, peer_parameters);
  std::thread peer_start([&peer] { peer.start(); });
  const Config config = node(1);
  Gossip gossip(config, parameters);
  gossip.start();
  peer_start.join();
  peer.publish([] { return 1.0; });

  device.complete = false;
  gossip.publish([] { return 1.0; });
  gossip.begin_pull();
  CHECK_FALSE(gossip.node().client().under_way());
  device.queries_left = 10;
  const StepReport report = gossip.update_wait();
  CHECK(device.queries_left == 0);
  CHECK(report.outcome == Outcome::mixed);
  CHECK(report.waited > 0ns);
}

TEST_CASE("a step with a budget gives up on a device that is not done within it") {
  FakeAccelerator device;
  Config config = test::loopback_config(net::free_ports(2), 1);
  config.gossip.start_wait = 50ms;
  config.gossip.timeout = 100ms;
  config.gossip.step_budget = 20ms;
  const auto module = module_of_every_kind(1);
  FlatParameters flat(*module);
  Unpinned parameters(flat);
  Gossip gossip(config, parameters);
  gossip.start();
  device.complete = false;
  gossip.publish([] { return 1.0; });
  gossip.begin_pull();
  const StepReport report = gossip.update_wait();
  CHECK(report.outcome == Outcome::pending);
  CHECK(report.waited >= 20ms);
  CHECK(report.waited < 5s);
  device.complete = true;  // for the end of the test
}

}  // namespace dpwa
