#include "examples/train/program.h"

#include <torch/utils.h>

#include <cstdio>
#include <numeric>
#include <vector>

#include "adapters/parallel/batch_search.h"
#include "dpwa/base/process_memory.h"
#include "dpwa/base/processors.h"
#include "dpwa/config/config.h"
#include "dpwa/config/node_threads.h"
#include "dpwa/parallel/largest_batch.h"
#include "dpwa/parallel/seed_streams.h"
#include "examples/train/data_sets.h"
#include "examples/train/models.h"
#include "examples/train/plan.h"
#include "examples/train/torch_setup.h"

namespace dpwa::train {
namespace {

constexpr std::uint64_t largest_option = 65536;  // that --batch-size takes
constexpr double mebibyte = 1 << 20;

double budget_of(const TrainOptions& options, const Config& config) {
  if (options.memory_budget != 0) return static_cast<double>(options.memory_budget);
  const auto nodes = static_cast<double>(nodes_on_own_host(config));
  return static_cast<double>(resident_bytes()) +
         0.8 * static_cast<double>(available_bytes()) / nodes;
}

void print_trial(const BatchTrial& trial) {
  const auto peak = trial.bytes > 0 ? rounded(trial.bytes / mebibyte, "%.1f MiB") : "-";
  std::printf("%8llu %16s   %s\n", static_cast<unsigned long long>(trial.batch), peak.c_str(),
              trial.fits ? "yes" : "no");
  std::fflush(stdout);
}

// `at_limit`: the text for a batch that is as large as the search allowed.
int print_result(const BatchSearch& found, const BatchSearchOptions& search, const char* at_limit) {
  if (search.budget > 0)
    std::printf("memory: %.1f MiB and %.3f MiB for each sample, of a budget of %.1f MiB\n",
                found.memory.fixed / mebibyte, found.memory.per_sample / mebibyte,
                search.budget / mebibyte);
  if (found.largest == 0) {
    std::fflush(stdout);
    std::fputs("dpwa-train: --find-batch: not even a batch of one sample fits\n", stderr);
    return 1;
  }
  std::printf("largest batch that fits: %llu%s\n", static_cast<unsigned long long>(found.largest),
              found.largest == search.limit ? at_limit : "");
  std::printf(
      "--batch-size %llu leaves a tenth free on this node; all nodes take the same: "
      "the least of theirs\n",
      static_cast<unsigned long long>(found.usable));
  return 0;
}

}  // namespace

int find_batch(const TrainOptions& options) {
  const Config config = load_config(options.config, options.name, options.join);
  require_data_directory(options);
  const auto devices = resolve_devices(options, config);
  set_compute_threads(compute_threads(options, config, processor_count()));
  const TrainTest data = load_data(options.data, options.data_dir, options.seed);
  const auto make = [&] { return make_model(options.model, data.train, options.init_seed); };
  const auto model = make();
  torch::manual_seed(SeedStreams(options.seed).of_rank(SeedRole::noise, 0));
  model->to(devices.front());
  const auto optimizer = make_optimizer(options, model->parameters());
  BatchLoss loss_of(*model, data.train, devices, make);

  BatchSearchOptions search;
  search.limit = std::min<std::uint64_t>(largest_option, data.train.size());
  if (devices.front().is_cpu()) search.budget = budget_of(options, config);
  search.tried = print_trial;
  std::printf("%8s %16s   %s\n", "batch", "peak memory", "fits");
  const auto step = [&](std::uint64_t batch) {
    std::vector<std::uint32_t> samples(batch);
    std::iota(samples.begin(), samples.end(), 0U);
    optimizer->zero_grad();
    loss_of(samples).backward();
    optimizer->step();
  };
  return print_result(
      find_largest_batch(*model, *optimizer, step, search), search,
      search.limit == largest_option ? ", the most that --batch-size takes" : ", all samples");
}

}  // namespace dpwa::train
