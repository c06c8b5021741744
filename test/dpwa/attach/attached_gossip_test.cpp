#include <doctest/doctest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <future>
#include <limits>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "dpwa/attach/attached_gossip.h"
#include "dpwa/attach/node_service.h"
#include "dpwa/attach/protocol.h"
#include "dpwa/config/config.h"
#include "dpwa/net/free_ports.h"
#include "dpwa/wire/messages.h"
#include "test/dpwa/config/scratch_file.h"
#include "test/support/eventually.h"

namespace dpwa::attach {
namespace {

// Stands in for a node process that takes a trainer and starts with it. `told` receives what the
// trainer said of itself.
ipc::MessageSocket greeted_trainer(int listener, nlohmann::json* told = nullptr,
                                   int version = protocol_version) {
  ipc::MessageSocket trainer;
  while (!trainer.is_open()) {
    ipc::wait_for_any({listener}, ipc::look_every);
    trainer = ipc::MessageSocket(ipc::accept_from(listener));
  }
  const nlohmann::json first{{"state", to_json(GossipState{})}, {"version", version}};
  const std::string yes = first.dump();
  FileDescriptor parameters;
  const auto attach = trainer.receive(&parameters);
  if (told != nullptr) *told = nlohmann::json::parse(attach.value_or("{}"));
  trainer.send(yes);
  trainer.receive();  // the manifest
  trainer.send(yes);
  trainer.receive();  // start
  trainer.send(yes);
  return trainer;
}

// One that ends right after that. Returns what the trainer said of itself.
nlohmann::json take_one_trainer(int listener, int version = protocol_version) {
  nlohmann::json told;
  greeted_trainer(listener, &told, version);
  return told;
}

// The node w1 of a cluster of its own, whose network side is a process. No process listens at its
// port unless one is given.
class OneNode {
 public:
  explicit OneNode(const std::string& cluster, std::uint16_t port = 28000)
      : file_("cluster: " + cluster + "_" + std::to_string(::getpid()) +
              "\nnodes: [{name: w1, host: 127.0.0.1, port: " + std::to_string(port) +
              "}]\ngossip: {daemon: true}\nsecurity: {mode: insecure}\n") {}

  Config config() const { return load_config(file_.path(), "w1"); }

 private:
  const test::ScratchFile file_;
};

std::string socket_of(const Config& config) {
  return socket_name(config.cluster, "w1", config.self_node().port);
}

// A trainer of four parameters.
AttachedGossip trainer_of(const Config& config) {
  return AttachedGossip(config, Manifest({{.name = "x", .shape = {4}}}), allocate_parameters(64),
                        1);
}

}  // namespace

TEST_CASE("a trainer tells its node process the seed of its choices, where it has one") {
  const OneNode one("attached_seed_test");
  for (const auto& seed : {std::optional<std::uint64_t>(), std::optional<std::uint64_t>(1)}) {
    Config config = one.config();
    config.gossip.seed = seed;
    const FileDescriptor listener = listen_for_trainers(socket_of(config));
    nlohmann::json told;
    std::jthread node([&] { told = take_one_trainer(listener.get()); });
    AttachedGossip gossip = trainer_of(config);
    gossip.start();
    node.join();
    CHECK(told.at("seed").is_null() == !seed);
    if (seed) CHECK(told.at("seed") == *seed);
    gossip.leave();
  }
}

TEST_CASE("a trainer asks for a report only when the answer to its send brings none") {
  const OneNode one("attached_report_test");
  const Config config = one.config();
  const FileDescriptor listener = listen_for_trainers(socket_of(config));
  StepReport report;
  std::vector<std::string> asked;
  std::jthread node([&] {
    ipc::MessageSocket trainer = greeted_trainer(listener.get());
    while (const auto request = trainer.receive()) {
      const auto half = step_request_in(*request);
      if (!half) {
        asked.push_back(nlohmann::json::parse(*request).at("do"));
        trainer.send(nlohmann::json{{"state", to_json(GossipState{})}}.dump());
        continue;
      }
      const bool waits = half->half == StepRequest::Half::wait;
      asked.push_back(waits ? "wait" : "send");
      StepAnswer answer;
      if (waits || asked.size() == 1) {  // the first step blends
        report.clock = static_cast<double>(asked.size());
        answer.report = report;
      }
      trainer.send(encode(answer));
    }
  });
  AttachedGossip gossip = trainer_of(config);
  gossip.start();
  std::vector<double> clocks;
  for (int step = 0; step < 2; ++step) {
    gossip.update_send([] { return 1.0; });
    clocks.push_back(gossip.update_wait().clock);
  }
  gossip.leave();
  node.join();
  CHECK(asked == std::vector<std::string>{"send", "send", "wait", "leave"});
  CHECK(clocks == std::vector<double>{1, 3});
}

TEST_CASE("a trainer is told of a node process that speaks another version") {
  const OneNode one("attached_version_test");
  const Config config = one.config();
  const FileDescriptor listener = listen_for_trainers(socket_of(config));
  std::jthread node([&] { take_one_trainer(listener.get(), 1000); });
  AttachedGossip gossip = trainer_of(config);
  CHECK_THROWS_WITH_AS(gossip.start(),
                       doctest::Contains("the node process of 'w1' speaks version 1000"),
                       std::runtime_error);
  gossip.leave();
}

TEST_CASE("a node process refuses a trainer of another version, and takes the next") {
  const OneNode one("node_version_test", net::free_ports(1).front());
  const Config config = one.config();
  std::atomic<bool> stop{false};
  NodeService service(config, [&] { return config; },
                      {[&] { return stop.load(); }, [] { return false; }});
  std::jthread node([&] { service.run(); });
  const auto name = socket_of(config);
  for (const auto& [version, problem] : {std::pair(1, true), std::pair(protocol_version, false)}) {
    CAPTURE(version);
    auto socket = ipc::connect_to(name);
    REQUIRE(test::eventually([&] { return socket || (socket = ipc::connect_to(name)); }));
    ipc::MessageSocket trainer(std::move(*socket));
    const nlohmann::json request{
        {"do", "attach"}, {"version", version}, {"cluster", config.cluster}, {"node", "w1"},
        {"process", 1},   {"threads", 1},       {"seed", nullptr},           {"copies", 0}};
    trainer.send(request.dump());
    const auto answer = nlohmann::json::parse(trainer.receive().value_or("{}"));
    CHECK(answer.contains("error") == problem);
    CHECK(answer.contains("state") == !problem);
  }
  stop = true;
}

TEST_CASE("without a step budget a first half is answered with the report of the step") {
  for (const int budget_ms : {0, 50}) {
    CAPTURE(budget_ms);
    const OneNode one("node_budget_test", net::free_ports(1).front());
    Config config = one.config();
    config.gossip.step_budget = std::chrono::milliseconds(budget_ms);
    std::atomic<bool> stop{false};
    NodeService service(config, [&] { return config; },
                        {[&] { return stop.load(); }, [] { return false; }});
    std::jthread node([&] { service.run(); });
    const auto name = socket_of(config);
    auto socket = ipc::connect_to(name);
    REQUIRE(test::eventually([&] { return socket || (socket = ipc::connect_to(name)); }));
    ipc::MessageSocket trainer(std::move(*socket));
    const auto parameters = allocate_parameters(64);
    const nlohmann::json attach{{"do", "attach"},
                                {"version", protocol_version},
                                {"cluster", config.cluster},
                                {"node", "w1"},
                                {"process", 1},
                                {"threads", 1},
                                {"seed", nullptr},
                                {"copies", 0}};
    trainer.send(attach.dump(), parameters->descriptor());
    trainer.receive();
    const auto manifest = wire::encode(Manifest({{.name = "x", .shape = {4}}}), 0);
    trainer.send({reinterpret_cast<const char*>(manifest.data()), manifest.size()});
    trainer.receive();
    trainer.send(R"({"do": "start", "resume": null, "waited": 0})");
    trainer.receive();
    trainer.send(encode(StepRequest{StepRequest::Half::send, 0.5}));
    const auto answer = step_answer_in(trainer.receive().value_or(""));
    REQUIRE(answer);
    CHECK(answer->report.has_value() == (budget_ms == 0));
    CHECK(answer->state.clock == 1);
    stop = true;
  }
}

TEST_CASE("a node process answers its callers while a name server does not answer it") {
  const OneNode one("node_reload_test", net::free_ports(1).front());
  const Config config = one.config();
  std::atomic<bool> stop{false};
  std::atomic<bool> hang_up{true};
  std::atomic<bool> loading{false};
  std::promise<void> name_server;
  NodeService service(config,
                      [&] {
                        loading = true;
                        name_server.get_future().wait();
                        return config;
                      },
                      {[&] { return stop.load(); }, [&] { return hang_up.exchange(false); }});
  std::jthread node([&] { service.run(); });
  CHECK(test::eventually([&] { return loading.load(); }));
  auto socket = ipc::connect_to(socket_of(config));
  REQUIRE(socket.has_value());
  ipc::MessageSocket trainer(std::move(*socket));
  trainer.send("{}");
  const auto deadline = std::chrono::steady_clock::now() + test::patience;
  const auto late = [deadline] { return std::chrono::steady_clock::now() > deadline; };
  const auto answer = trainer.receive(nullptr, late);
  REQUIRE(answer);
  CHECK(nlohmann::json::parse(*answer).contains("error"));
  name_server.set_value();
  stop = true;
}

TEST_CASE("parameters larger than memory are refused") {
  CHECK_THROWS_AS(allocate_parameters(std::size_t{1} << 60), std::bad_alloc);
  CHECK_THROWS_AS(allocate_parameters(~std::size_t{0}), std::bad_alloc);
}

TEST_CASE("a model too small for gossip.blocks is refused before a node process is asked for") {
  Config config = OneNode("attached_blocks_test").config();
  config.gossip.blocks = 2;
  CHECK_THROWS_WITH_AS(trainer_of(config), doctest::Contains("gossip.blocks: 2 blocks, but"),
                       ConfigError);
}

TEST_CASE("after the end of its node process a trainer's steps fail, but leaving does not") {
  const OneNode one("attached_gossip_test");
  const Config config = one.config();
  const FileDescriptor listener = listen_for_trainers(socket_of(config));
  std::jthread node([&] { take_one_trainer(listener.get()); });
  AttachedGossip gossip = trainer_of(config);
  gossip.start();
  node.join();
  SUBCASE("found by a step") {
    CHECK_THROWS_AS(gossip.update_send([] { return 1.0; }), const std::runtime_error&);
  }
  SUBCASE("found by leaving") {}
  CHECK_NOTHROW(gossip.leave());
  CHECK_NOTHROW(gossip.leave());
  CHECK_FALSE(gossip.finish().averaged);
}

using nlohmann::json;

TEST_CASE("another version of the attach protocol is told in one line") {
  CHECK(version_problem({{"version", protocol_version}}, "the trainer").empty());
  CHECK(version_problem(json::object(), "the trainer") ==
        "the trainer speaks version 1 of the attach protocol, this process version " +
            std::to_string(protocol_version) + "; run the same release of dpwa on both sides");
}

TEST_CASE("nodes of one host listen under names of their own") {
  CHECK(socket_name("c", "w1", 1) != socket_name("c", "w2", 1));
  CHECK(socket_name("c", "w1", 1) != socket_name("c", "w1", 2));
  CHECK(socket_name("a", "bc", 1) != socket_name("ab", "c", 1));
  CHECK(socket_name(std::string(255, 'c'), std::string(255, 'n'), 65535).size() < 100);
}

TEST_CASE("a second node process of a name is told that there is one") {
  const std::string name = socket_name("protocol_test", std::to_string(::getpid()), 1);
  const FileDescriptor listener = listen_for_trainers(name);
  CHECK_THROWS_WITH_AS(listen_for_trainers(name), "a node process of that name runs already",
                       std::runtime_error);
}

TEST_CASE("a report comes through as it was") {
  StepReport sent;
  sent.outcome = Outcome::mixed;
  sent.peer = "w2";
  sent.factor = 0.1;
  sent.staleness = -1.0 / 3;
  sent.bytes = (std::uint64_t{1} << 53) + 1;
  sent.waited = std::chrono::nanoseconds(5);
  sent.clock = 1e15 + 0.5;
  sent.distance = std::numeric_limits<double>::denorm_min();
  sent.clipped = true;
  sent.refused = 2;
  sent.block = 3;
  sent.blocks = 4;
  sent.same_host = true;
  sent.pulls_ok = 5;
  sent.pulls_failed = 6;
  const auto answer = step_answer_in(encode(StepAnswer{{0.5, 8, 9}, sent}));
  REQUIRE(answer);
  CHECK(answer->state.clock == 0.5);
  CHECK(answer->state.lineage == 8);
  CHECK(answer->state.incarnation == 9);
  REQUIRE(answer->report);
  const StepReport& came = *answer->report;
  CHECK(came.outcome == sent.outcome);
  CHECK(came.peer == sent.peer);
  CHECK(came.factor == sent.factor);
  CHECK(came.staleness == sent.staleness);
  CHECK(came.bytes == sent.bytes);
  CHECK(came.waited == sent.waited);
  CHECK(came.clock == sent.clock);
  CHECK(came.distance == sent.distance);
  CHECK(came.clipped);
  CHECK(came.refused == 2);
  CHECK(came.block == 3);
  CHECK(came.blocks == 4);
  CHECK(came.same_host);
  CHECK(came.pulls_ok == 5);
  CHECK(came.pulls_failed == 6);
}

TEST_CASE("the end and the state of a node come through as they were") {
  const FinishReport finish =
      finish_report_in(json::parse(to_json(FinishReport{true, 3, 0.25, false}).dump()));
  CHECK(finish.averaged);
  CHECK(finish.participants == 3);
  CHECK(finish.distance_to_average == 0.25);
  CHECK_FALSE(finish.enough);
  const std::uint64_t large = ~std::uint64_t{0};
  const GossipState state =
      resume_state_in(json::parse(to_json(GossipState{0.1, large, 7}).dump()));
  CHECK(state.clock == 0.1);
  CHECK(state.lineage == large);
  CHECK(state.incarnation == 7);
}

TEST_CASE("numbers that are not finite travel as none") {
  for (const double value : {std::nan(""), std::numeric_limits<double>::infinity()})
    CHECK(std::isnan(number_in(json::parse(number(value).dump()))));
}

TEST_CASE("a message that lacks a field or has another type is refused") {
  json text = to_json(FinishReport{});
  text["participants"] = "many";
  CHECK_THROWS_AS(finish_report_in(text), json::exception);
  CHECK_THROWS_AS(finish_report_in(json::object()), json::exception);
  CHECK_THROWS_AS(resume_state_in(json(nullptr)), json::exception);
}

TEST_CASE("the halves of a step are told from other messages") {
  for (const std::optional<double> loss : {std::optional<double>(), {0.25}}) {
    const auto request = step_request_in(encode(StepRequest{StepRequest::Half::wait, loss}));
    REQUIRE(request);
    CHECK(request->half == StepRequest::Half::wait);
    CHECK(request->loss == loss);
  }
  const auto pending = step_answer_in(encode(StepAnswer{}));
  REQUIRE(pending);
  CHECK_FALSE(pending->report);
  const std::string half = encode(StepRequest{}), answer = encode(StepAnswer{});
  for (const std::string& other : {std::string(), std::string(R"({"do": "leave"})"), half + ' ',
                                   half.substr(1), std::string(answer.size(), 'x')})
    CHECK_FALSE(step_request_in(other));
  for (const std::string& other : {std::string(), std::string(R"({"error": "no"})"), half,
                                   answer.substr(0, answer.size() - 1)})
    CHECK_FALSE(step_answer_in(other));
}

}  // namespace dpwa::attach
