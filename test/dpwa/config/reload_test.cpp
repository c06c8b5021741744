#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "dpwa/config/open_log.h"
#include "dpwa/config/reload.h"
#include "dpwa/config/resolve.h"
#include "test/support/eventually.h"
#include "test/support/log_file.h"

namespace dpwa {
namespace {

Config cluster(const std::string& more = "", const std::string& nodes = "") {
  const std::string listed = nodes.empty() ? "[{name: w1, port: 1}, {name: w2, port: 2}]" : nodes;
  Config config = parse_cluster("cluster: c\nnodes: " + listed + "\n" + more, "c.yaml");
  config.self = "w1";
  return config;
}

std::vector<std::string> lines(const std::vector<ReloadPlan::Change>& changes) {
  std::vector<std::string> text;
  for (const auto& change : changes) text.push_back(to_text(change));
  return text;
}

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("the same file again changes nothing") {
  const ReloadPlan plan = plan_reload(cluster(), cluster());
  CHECK(plan.applied.empty());
  CHECK(plan.kept.empty());
  CHECK(to_yaml(plan.config) == to_yaml(cluster()));
}

TEST_CASE("waits, chances and the log are taken over, and named") {
  const ReloadPlan plan = plan_reload(
      cluster(), cluster("gossip: {timeout_ms: 2s, pull_probability: 0.25, step_budget_ms: 5}\n"
                         "log: {level: debug}\n"));
  CHECK(lines(plan.applied) == Lines{"gossip.pull_probability: 1 -> 0.25",
                                     "gossip.timeout_ms: 500 -> 2000",
                                     "gossip.step_budget_ms: 0 -> 5", "log.level: info -> debug"});
  CHECK(plan.kept.empty());
  CHECK(plan.config.gossip.timeout == Duration(std::chrono::seconds(2)));
  CHECK(plan.config.gossip.pull_probability == 0.25);
  CHECK(plan.config.log.level == "debug");
}

TEST_CASE("other nodes may join, move and go, and the own entry stays") {
  const ReloadPlan plan =
      plan_reload(cluster("", "[{name: w1, port: 1}, {name: w2, port: 2}, {name: w3, port: 3}]"),
                  cluster("", "[{name: w1, port: 9}, {name: w2, port: 20}, {name: w4, port: 4}]"));
  REQUIRE(plan.joined.size() == 1);
  CHECK(plan.joined[0].name == "w4");
  CHECK(plan.joined[0].port == 4);
  REQUIRE(plan.moved.size() == 1);
  CHECK(plan.moved[0].name == "w2");
  CHECK(plan.moved[0].port == 20);
  CHECK(plan.gone == Lines{"w3"});
  CHECK(lines(plan.kept) == Lines{"nodes[w1].port: 1 -> 9"});
  CHECK(plan.config.nodes.size() == 3);
  CHECK(plan.config.nodes[0].port == 1);
}

TEST_CASE("the cores of another node ask nothing of this one, its own ask for a restart") {
  const ReloadPlan plan = plan_reload(
      cluster(), cluster("", "[{name: w1, port: 1, cores: [0]}, {name: w2, port: 2, cores: [3]}]"));
  CHECK(lines(plan.kept) == Lines{"nodes[w1].cores: none -> [0]"});
  CHECK(lines(plan.applied) == Lines{"nodes[w2].cores: none -> [3]"});
  CHECK(plan.moved.empty());
}

namespace {

using test::LogFile;

}  // namespace

TEST_CASE("a log.file that cannot be opened is named with its line, and the log stays as it is") {
  const LogFile before;
  const Config config = parse_cluster(
      "nodes: [{name: w1, port: 1}]\nlog:\n  level: warn\n  file: /dev/null/a.log\n", "c.yaml");
  std::string error;
  try {
    open_log(config).use();
  } catch (const ConfigError& thrown) {
    error = thrown.what();
  }
  CHECK(error.starts_with("c.yaml:4: log.file: "));
  CHECK(error.find("/dev/null/a.log") != std::string::npos);
  CHECK(error.ends_with("; accepted: a file that can be written, or \"\" for stderr"));
  log(LogLevel::info, "test", "still here");
  CHECK(before.has("still here"));
}

TEST_CASE("a log that is opened and not used changes nothing") {
  const LogFile before;
  { const NewLog other("off", "", ""); }
  log(LogLevel::info, "test", "still here");
  CHECK(before.has("still here"));
}

TEST_CASE("a quoted text cannot begin a line of the log or turn one") {
  const LogFile file;
  log(LogLevel::warn, "test", "'a\nb' and 'w\u202E1' failed");
  CHECK(file.has("test: 'a\\x0ab' and 'w\\xe2\\x80\\xae1' failed\n"));
}

TEST_CASE("an exception of a reload becomes one line of the log") {
  const LogFile file;
  reload_or_keep([] { throw ConfigError("c.yaml:3: gossip: wrong"); });
  CHECK(file.has("config: not reloaded: c.yaml:3: gossip: wrong\n"));
  reload_or_keep([] { throw std::bad_alloc(); });
  CHECK(file.has("config: not reloaded: out of memory\n"));
  reload_or_keep([] {});
}

TEST_CASE("a reload that moves, adds and removes thousands of nodes names each once") {
  const auto of = [](int nodes, int port) {
    Config config;
    config.self = "w0";
    for (int i = 0; i < nodes; ++i) {
      NodeEntry& node = config.nodes.emplace_back();
      node.name = "w" + std::to_string(i);
      node.host = "10.0.0.1";
      node.port = static_cast<std::uint16_t>(port + i);
    }
    return config;
  };
  constexpr std::size_t nodes = 4000;
  const Config running = of(nodes, 1000);
  Config fresh = of(nodes, 1001);
  for (std::size_t i = nodes / 2; i < nodes; ++i) fresh.nodes[i].name += 'x';
  const ReloadPlan plan = plan_reload(running, fresh);
  CHECK(plan.moved.size() + 1 == nodes / 2);
  CHECK(plan.joined.size() == nodes / 2);
  CHECK(plan.gone.size() == nodes / 2);
}

TEST_CASE("a load in the background holds up nobody, and is taken over once it is there") {
  std::promise<void> answer;  // of the name server
  BackgroundReload reload([&answer] {
    answer.get_future().wait();
    return cluster("gossip: {timeout_ms: 2s}\n");
  });
  std::vector<Duration> taken;
  const auto apply = [&taken](Config fresh) { taken.push_back(fresh.gossip.timeout); };
  reload.poll(apply);
  reload.begin();
  reload.poll(apply);
  CHECK(taken.empty());
  answer.set_value();
  CHECK(test::eventually([&] {
    reload.poll(apply);
    return !taken.empty();
  }));
  reload.poll(apply);
  CHECK(taken == std::vector<Duration>{std::chrono::seconds(2)});
}

TEST_CASE("a load that waits for a name server ends with its owner") {
  struct NameServer {
    std::promise<void> asked;
    std::promise<void> answers;
  };
  const auto server = std::make_shared<NameServer>();
  const ResolverDouble resolver([server](const std::string&) {
    server->asked.set_value();
    server->answers.get_future().wait();
    return Resolved();
  });
  {
    BackgroundReload reload([] {
      config::Resolver().resolve("w2.example");
      return cluster();
    });
    reload.begin();
    server->asked.get_future().wait();
  }
  server->answers.set_value();
}

TEST_CASE("a wrong file in the background changes nothing, and the next one is taken over") {
  int loads = 0;  // of the thread that loads, and after it of this one
  BackgroundReload reload([&loads] {
    if (++loads == 1) throw ConfigError("c.yaml: wrong");
    return cluster();
  });
  int taken = 0;
  const auto poll = [&] { reload.poll([&taken](Config) { ++taken; }); };
  reload.begin();
  reload.begin();  // the file may have been read: it is read once more
  CHECK(test::eventually([&] {
    poll();
    return taken == 1;
  }));
  poll();
  CHECK(loads == 2);
  CHECK(taken == 1);
}

}  // namespace dpwa
