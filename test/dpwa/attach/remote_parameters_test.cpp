#include "dpwa/attach/remote_parameters.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "dpwa/attach/attached_gossip.h"
#include "dpwa/attach/node_service.h"
#include "dpwa/gossip/gossip.h"
#include "dpwa/gossip/gossip_node.h"
#include "dpwa/gossip/host_parameters.h"
#include "dpwa/net/free_ports.h"
#include "dpwa/net/local_node.h"
#include "test/dpwa/config/scratch_file.h"
#include "test/support/eventually.h"

// Trainers whose parameters are on a device, and their node processes. A device is stood in for.
namespace dpwa::attach {
namespace {

constexpr std::size_t elements = 16;

Manifest manifest() {
  return Manifest({{.name = "x", .shape = {elements}}});
}

// Copies are done some looks after they have begun, as on a stream. What has landed can be blended
// once it is fetched.
class Device final : public Parameters {
 public:
  explicit Device(float value) : values_(manifest().total_bytes() / sizeof(float), value) {}

  const Manifest& manifest() const override { return manifest_; }
  void lock(AlignedBuffer& memory) override {
    ++locked;
    CHECK(memory.bytes().size() == manifest_.total_bytes());
  }
  void copy_out(std::span<std::byte> snapshot) override {
    if (fails) throw std::runtime_error("the device has failed");
    staging_ = values_;
    target_ = snapshot;
    looks_ = 2;
  }
  void fetch(const Landing& landing) override {
    CHECK(landing_is_free());
    CHECK(landing.range() == ByteRange{0, manifest_.total_bytes()});
    looks_to_fetch_ = 2;
    ++fetches;
  }
  bool fetched() override { return looks_to_fetch_-- <= 0; }
  bool landing_is_free() override {
    ++asked_for_landing;
    return looks_to_fetch_ <= 0;
  }
  void blend(const Landing& landing, double factor) override {
    CHECK(looks_to_fetch_ < 0);  // nothing waits for it
    blend_regions(manifest_, landing.range(), bytes(), landing.bytes(), landing.mode(), factor);
    ++blends;
  }
  void assign(std::span<const std::byte> snapshot) override {
    std::ranges::copy(snapshot, bytes().begin());
  }
  bool settled() override {
    if (target_.empty()) return true;
    if (looks_-- > 0) return false;
    std::memcpy(target_.data(), staging_.data(), target_.size());
    target_ = {};
    return true;
  }

  float value() const { return values_.front(); }
  void add(float change) {
    for (float& value : values_) value += change;
  }

  int locked = 0;
  int fetches = 0;
  int asked_for_landing = 0;
  int blends = 0;
  bool fails = false;

 private:
  std::span<std::byte> bytes() { return std::as_writable_bytes(std::span(values_)); }

  const Manifest manifest_ = attach::manifest();
  std::vector<float> values_;
  std::vector<float> staging_;
  std::span<std::byte> target_;
  int looks_ = 0;
  int looks_to_fetch_ = 0;
};

// The nodes w1, which is a process of its own, and w2.
class TwoNodes {
 public:
  explicit TwoNodes(const std::string& cluster)
      : ports_(net::free_ports(2)),
        file_("cluster: " + cluster + "_" + std::to_string(::getpid()) +
              "\nnodes:\n  - {name: w1, host: 127.0.0.1, port: " + std::to_string(ports_[0]) +
              "}\n  - {name: w2, host: 127.0.0.1, port: " + std::to_string(ports_[1]) +
              "}\ngossip: {start_wait_ms: 5s, finish_wait_ms: 1s}"
              "\nsecurity: {mode: insecure}\n") {}

  Config of(const char* name) const {
    Config config = load_config(file_.path(), name);
    config.gossip.daemon = name == std::string("w1");
    return config;
  }

 private:
  const std::vector<std::uint16_t> ports_;
  const test::ScratchFile file_;
};

class RunningService {
 public:
  explicit RunningService(const Config& config)
      : service_(config, [config] { return config; },
                 {[this] { return stop_.load(); }, [] { return false; }}),
        thread_([this] { service_.run(); }) {}
  ~RunningService() { stop_ = true; }

 private:
  std::atomic<bool> stop_{false};
  NodeService service_;
  std::jthread thread_;
};

// w2, with as many steps as it takes to be there for w1.
class Peer {
 public:
  explicit Peer(const Config& config)
      : values_(manifest().total_bytes() / sizeof(float)),
        parameters_(manifest(), std::as_writable_bytes(std::span(values_))),
        gossip_(config, parameters_),
        thread_([this] {
          gossip_.start();
          while (!stop_) {
            gossip_.update_send([] { return 2.0; });
            for (float& value : values_) value += 1;
            gossip_.update_wait();
            std::this_thread::sleep_for(std::chrono::milliseconds(2));
          }
          gossip_.leave();
        }) {}
  ~Peer() { stop_ = true; }

 private:
  std::vector<float> values_;
  HostParameters parameters_;
  Gossip gossip_;
  std::atomic<bool> stop_{false};
  std::jthread thread_;
};

template <class Step>
bool steps_until(GossipSession& gossip, const std::function<bool()>& done, const Step& step) {
  return test::eventually([&] {
    gossip.update_send([] { return 0.5; });
    step();
    gossip.update_wait();
    return done();
  });
}

}  // namespace

TEST_CASE("a trainer makes the passes of its node process on its device, and both nodes blend") {
  const TwoNodes nodes("remote_parameters_test");
  const RunningService service(nodes.of("w1"));
  Device device(1);
  AttachedGossip gossip(nodes.of("w1"), device);
  const Peer peer(nodes.of("w2"));
  gossip.start();
  CHECK(device.locked > 0);
  // Without changes of its own the model of this node follows that of the other one.
  CHECK(steps_until(gossip, [&] { return device.blends > 3 && device.value() > 10; }, [] {}));
  CHECK(device.fetches >= device.blends);
  CHECK(device.asked_for_landing > device.fetches);
  int losses = 0;
  CHECK(test::eventually([&] {
    gossip.update_send([&losses] {
      ++losses;
      return 0.5;
    });
    gossip.update_wait();
    return losses > 2;  // each is read when its copy is complete
  }));
  gossip.leave();
  const int before = device.blends;
  gossip.leave();
  CHECK(device.blends == before);
}

TEST_CASE("the next trainer of a node process continues from the last snapshot of a device") {
  const TwoNodes nodes("remote_restart_test");
  Config config = nodes.of("w1");
  config.gossip.start_wait = std::chrono::seconds(2);
  const RunningService service(config);
  {
    Device device(3);
    auto gossip = std::make_unique<AttachedGossip>(config, device);
    gossip->start();
    for (int step = 0; step < 20; ++step) {
      gossip->update_send([] { return 0.5; });
      device.add(1);
      gossip->update_wait();
    }
    gossip.reset();  // as one that is killed: it does not leave
  }
  Device device(0);
  AttachedGossip gossip(config, device);
  CHECK(test::eventually([&] {
    try {
      gossip.start();
      return true;
    } catch (const std::runtime_error&) {  // the node process has not seen the end of the first
      return false;
    }
  }));
  CHECK(device.value() > 10);
  CHECK(gossip.resume_state().clock > 10);
  gossip.leave();
}

TEST_CASE("a pass that fails on the device is the error of the step") {
  const TwoNodes nodes("remote_failure_test");
  Config config = nodes.of("w1");
  config.gossip.start_wait = std::chrono::seconds(2);
  const RunningService service(config);
  Device device(3);
  AttachedGossip gossip(config, device);
  gossip.start();
  device.fails = true;
  const auto step = [&] {
    for (int i = 0; i < 10; ++i) {
      gossip.update_send([] { return 0.5; });
      gossip.update_wait();
    }
  };
  CHECK_THROWS_WITH_AS(step(), doctest::Contains("the device has failed"), std::runtime_error);
  CHECK_NOTHROW(gossip.leave());
}

TEST_CASE("a pass and its answer come through as they were") {
  const PassRequest sent{PassRequest::Kind::blend, 3, {64, 128}, LandingMode::values, 0.25, 7};
  const auto came = pass_request_in(encode(sent));
  REQUIRE(came);
  CHECK(came->kind == sent.kind);
  CHECK(came->memory == 3);
  CHECK(came->range == ByteRange{64, 128});
  CHECK(came->mode == LandingMode::values);
  CHECK(came->factor == 0.25);
  CHECK(came->send == 7);
  const auto answer = pass_answer_in(encode(PassAnswer{0.5, "no"}));
  REQUIRE(answer);
  CHECK(answer->value == 0.5);
  CHECK(answer->error == "no");
  for (const std::string& other :
       {std::string(), std::string(R"({"do": "leave"})"), encode(StepRequest{}),
        encode(StepAnswer{}), encode(PassAnswer{}) + "x"})
    CHECK_FALSE(pass_request_in(other));
  for (const std::string& other : {std::string(), encode(sent), encode(StepAnswer{})})
    CHECK_FALSE(pass_answer_in(other));
}

}  // namespace dpwa::attach
