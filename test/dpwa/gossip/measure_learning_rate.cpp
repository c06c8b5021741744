// Measures the effective learning rate among free-running nodes: each on a thread of its own, with
// its own pace, over real sockets, under a constant gradient that is the same everywhere. Beside it
// the mean clock of the nodes, against the mean of their steps.
//   dpwa_measure_learning_rate [NODES] [STEPS] [STEP_MS] [JITTER] [lockstep] [budget] [slow] [lerp]
//   [plain] [unclipped]
// JITTER: each step lasts STEP_MS * (1 +- JITTER). lockstep: all begin at once, else at random
// within one step. budget: steps wait for their pull. slow, slow=N: the last node takes four (N)
// times as long for a step, and a quarter of the steps. lerp: the blend of the original instead of
// the delta blend. plain: without the pair ledger. unclipped: the firewall only warns; it clips
// these few numbers where it would not clip a model. docs/ALGORITHMS.md holds what it printed.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "dpwa/base/random.h"
#include "dpwa/log/log.h"
#include "test/support/vector_cluster.h"

namespace dpwa {
namespace {

struct Plan {
  std::size_t nodes = 4;
  int steps = 469;
  double step_ms = 8;
  double jitter = 0.1;
  bool lockstep = false;
  bool budget = false;
  int slowdown_of_last = 1;
  bool lerp = false;
  bool plain = false;
  bool unclipped = false;

  int slowdown(std::size_t node) const { return node + 1 == nodes ? slowdown_of_last : 1; }
  int steps_of(std::size_t node) const { return steps / slowdown(node); }
};

Duration milliseconds(double count) {
  return Duration(static_cast<Duration::rep>(count * 1e6));
}

constexpr float update = 1.0F / 1024;  // learning rate times gradient

void train(test::VectorNode& node, std::size_t index, const Plan& plan, Random random) {
  if (!plan.lockstep)
    std::this_thread::sleep_for(milliseconds(plan.step_ms * random.uniform(0, 1)));
  auto next = std::chrono::steady_clock::now();
  const double step_ms = plan.step_ms * plan.slowdown(index);
  for (int step = 0; step < plan.steps_of(index); ++step) {
    next += milliseconds(step_ms * (1 + plan.jitter * random.uniform(-1, 1)));
    node.gossip().update_send([] { return 1.0; });
    for (float& value : node.values()) value -= update;
    node.gossip().update_wait();
    std::this_thread::sleep_until(next);
  }
}

void measure(const Plan& plan) {
  test::VectorCluster cluster(plan.nodes, 8, [&](Config& config) {
    if (plan.budget) config.gossip.step_budget = config.gossip.timeout;
    if (plan.lerp) config.gossip.blend = BlendMode::lerp;
    config.gossip.ledger = !plan.plain;
    if (plan.unclipped) config.gossip.firewall.distance = DistancePolicy::warn;
  });
  cluster.start();
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < plan.nodes; ++i) {
    threads.emplace_back([&, i] { train(cluster.at(i), i, plan, Random(derive_seed(1, {i}))); });
  }
  for (auto& thread : threads) thread.join();
  double travelled = 0;
  double clock = 0;
  double steps = 0;
  for (std::size_t i = 0; i < plan.nodes; ++i) {
    travelled -= cluster.at(i).values()[0];
    clock += cluster.at(i).gossip().resume_state().clock;
    steps += plan.steps_of(i);
  }
  std::printf("effective learning rate %.3f, clock / steps %.3f\n",
              travelled / (steps * static_cast<double>(update)), clock / steps);
}

}  // namespace
}  // namespace dpwa

int main(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  dpwa::Plan plan;
  plan.lockstep = std::erase(words, "lockstep") > 0;
  plan.budget = std::erase(words, "budget") > 0;
  std::erase_if(words, [&plan](const std::string& word) {
    if (!word.starts_with("slow")) return false;
    plan.slowdown_of_last = word.starts_with("slow=") ? std::atoi(word.c_str() + 5) : 4;
    return true;
  });
  plan.lerp = std::erase(words, "lerp") > 0;
  plan.plain = std::erase(words, "plain") > 0;
  plan.unclipped = std::erase(words, "unclipped") > 0;
  if (!words.empty()) plan.nodes = static_cast<std::size_t>(std::atoi(words[0].c_str()));
  if (words.size() > 1) plan.steps = std::atoi(words[1].c_str());
  if (words.size() > 2) plan.step_ms = std::atof(words[2].c_str());
  if (words.size() > 3) plan.jitter = std::atof(words[3].c_str());
  if (plan.nodes < 1 || plan.steps < 1 || plan.step_ms <= 0 || plan.slowdown_of_last < 1) {
    std::fputs(
        "usage: dpwa_measure_learning_rate [NODES [STEPS [STEP_MS [JITTER]]]] [lockstep] [budget] "
        "[slow[=TIMES]] [lerp] [plain] [unclipped]\n",
        stderr);
    return 2;
  }
  dpwa::NewLog("warn", "", "").use();
  dpwa::measure(plan);
}
