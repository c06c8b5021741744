#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "bench/measure/statistics.h"
#include "bench/worker/child.h"

namespace dpwa::bench {

struct StepSettings {
  std::string model = "mlp";  // mlp, resnet18
  std::size_t nodes = 2;
  std::uint64_t batch = 32;  // samples of each node
  int threads = 1;           // of each node
  std::uint64_t seed = 1;
  double seconds = 5;        // of each of the parts that take turns
  int windows = 9;           // which the seconds are cut into
  std::string torch_python;  // runs DistributedDataParallel; empty: left out
  std::string ddp_script;
};

// The result of one window, medians in microseconds. Those of DistributedDataParallel are 0 without
// it.
struct StepWindow {
  double step = 0;       // of backend collective, over the steps of all nodes
  double local = 0;      // the same step without communication
  double allreduce = 0;  // of as many bytes as the gradients have, by the engine alone
  double step_cpu = 0;   // processor time of a step and node, the mean
  double ddp_step = 0;
  double ddp_local = 0;
  double ddp_step_cpu = 0;
};

struct StepComparison {
  StepSettings settings;
  std::uint64_t parameters = 0;
  std::vector<StepWindow> windows;
  std::vector<double> steps_us;  // of all windows and nodes
  std::vector<double> ddp_steps_us;
  double loss = 0;  // of rank 0, after as many steps of both
  double ddp_loss = 0;
  std::string torch;  // the versions
  std::string ddp_torch;
  std::string ddp_absent;  // why there is no DistributedDataParallel; empty: there is
  Noise noise;
};

// The share of an all-reduce that does not show in the step, as it runs beside the backward pass:
// 1 when a step takes no longer than without communication, 0 when it takes as much longer as the
// bare all-reduce takes; less when it costs more than that.
double hidden_share(double step, double local, double allreduce);

// Steps of a window of this length: enough for a median, and all take the same number.
std::int64_t steps_of_window(double seconds, double step_us);

// Starts the nodes of both, and measures them in windows that take turns. Says how far it is on
// `progress`. Throws std::runtime_error.
StepComparison compare_steps(const StepSettings& settings, std::ostream& progress);

// The JSON document of docs/PERFORMANCE.md.
Json step_comparison_document(const StepComparison& measured);
void print_step_comparison(const Json& document, std::ostream& out);

}  // namespace dpwa::bench
