#include "bench/step/steps.h"

#include <torch/nn/module.h>
#include <torch/types.h>

#include <algorithm>
#include <chrono>

#include "adapters/adapter.h"
#include "bench/step/allocation_counter.h"
#include "dpwa/net/free_ports.h"

namespace dpwa::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;
constexpr std::size_t least_arrivals = 10;
constexpr int warm_up_steps = 3;

double since(SteadyClock::time_point from) {
  return std::chrono::duration<double, std::micro>(SteadyClock::now() - from).count();
}

void compute(double microseconds) {
  const auto begun = SteadyClock::now();
  while (since(begun) < microseconds) {
  }
}

StepTimes one_step(Adapter& adapter, const torch::Tensor& loss) {
  StepTimes times;
  const std::uint64_t all = allocations_of_all_threads();
  const std::uint64_t before = allocations_of_this_thread();
  auto from = SteadyClock::now();
  adapter.update_send(loss);
  times.send = since(from);
  // The optimizer's step is the caller's and would be here.
  from = SteadyClock::now();
  const StepReport report = adapter.update_wait(loss);
  times.wait = since(from);
  times.allocations = allocations_of_this_thread() - before;
  times.all_allocations = allocations_of_all_threads() - all;
  times.arrived = report.outcome == Outcome::mixed;
  times.waited = std::chrono::duration<double, std::micro>(report.waited).count();
  return times;
}

}  // namespace

TensorSizes tensor_sizes(std::uint64_t parameters, std::uint64_t tensors) {
  TensorSizes sizes;
  for (std::uint64_t i = 0; i < tensors; ++i) {
    const std::uint64_t elements = parameters / tensors + (i < parameters % tensors ? 1 : 0);
    sizes.emplace_back("p" + std::to_string(i), elements);
  }
  return sizes;
}

StepPeers::StepPeers(const TensorSizes& tensors, std::size_t peers, const NodeSettings& settings) {
  const auto ports = net::free_ports(1 + peers);
  file_ = std::make_unique<ClusterFile>(settings, ports);
  std::vector<NodeJob> jobs;
  if (settings.daemon) {
    Json job = {{"kind", "node"}, {"config", file_->path()}, {"name", node_name(0)}};
    jobs.push_back({std::move(job), /*pulls=*/false});
  }
  for (std::size_t i = 1; i <= peers; ++i) {
    Json job = {{"kind", "pull"},     {"config", file_->path()}, {"name", node_name(i)},
                {"tensors", tensors}, {"blend", false},          {"peer", nullptr}};
    jobs.push_back({std::move(job), /*pulls=*/false});
  }
  group_ = std::make_unique<Group>(program_folder() / "dpwa-measure", jobs);
}

std::vector<std::vector<StepTimes>> run_steps(
    const std::vector<Adapter*>& adapters, const StepPlan& plan,
    std::vector<std::unique_ptr<HandWritten>>& loops, std::vector<HandTimes>& hand,
    const std::function<void(std::size_t steps)>& on_progress) {
  const torch::Tensor loss = torch::full({}, 1.0);
  std::vector<std::vector<StepTimes>> steps(adapters.size());
  std::vector<std::size_t> arrivals(adapters.size());
  hand.resize(loops.size());
  const auto begun = SteadyClock::now();
  auto shown = begun;
  for (int index = -warm_up_steps;; ++index) {
    const bool counted = index >= 0;
    for (std::size_t i = 0; i < adapters.size(); ++i) {
      compute(plan.compute_us);
      const StepTimes times = one_step(*adapters[i], loss);
      if (!counted) continue;
      steps[i].push_back(times);
      arrivals[i] += times.arrived;
    }
    for (std::size_t i = 0; i < loops.size(); ++i) {
      const double copy = loops[i]->copy();
      const double separate = loops[i]->copy_and_blend();
      const double fused = loops[i]->blend_and_copy();
      if (!counted) continue;
      hand[i].copy.push_back(copy);
      hand[i].copy_and_blend.push_back(separate);
      hand[i].blend_and_copy.push_back(fused);
    }
    if (!counted) continue;
    const double elapsed = since(begun) / 1e6;
    if (since(shown) >= 1e6) {
      shown = SteadyClock::now();
      on_progress(steps.front().size());
    }
    // A machine on which pulls hardly ever arrive must not hold this up for ever.
    const bool enough = std::ranges::min(arrivals) >= least_arrivals;
    if (elapsed >= plan.seconds && (enough || elapsed >= 4 * plan.seconds)) return steps;
  }
}

}  // namespace dpwa::bench
