// dpwa-bench-step: what adapter->step adds to a training step. `dpwa-bench step` becomes this
// program, which is one of its own because it alone needs LibTorch.
#include <torch/nn/module.h>
#include <torch/types.h>

#include <ATen/Parallel.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <exception>
#include <iostream>
#include <optional>
#include <thread>

#include "adapters/adapter.h"
#include "bench/commands.h"
#include "bench/measure/machine.h"
#include "bench/quantity.h"
#include "bench/step/step_report.h"
#include "bench/step/steps.h"
#include "bench/worker/measurement.h"
#include "dpwa/base/plain_text.h"
#include "dpwa/base/standard_output.h"
#include "dpwa/base/version.h"
#include "dpwa/cli/help_format.h"
#include "dpwa/cli/usage_problem.h"
#include "dpwa/config/open_log.h"

namespace dpwa::bench {
namespace {

struct StepOptions {
  std::uint64_t parameters = 10'000'000;
  std::uint64_t tensors = 100;
  std::size_t peers = 1;
  NodeSettings settings;
  int threads = 0;  // 0 = one for each core
  double seconds = 3;
  double step_ms = 0;  // 0 = as long as a pull may take
  bool attached = false;
  bool json = false;
};

// A busy wait that a pull of this size fits into on a machine with next to nothing to spare.
double default_compute_us(std::uint64_t bytes) {
  return 2000 + static_cast<double>(bytes) / 1e9 * 1e6;
}

struct Model : torch::nn::Module {
  explicit Model(const TensorSizes& sizes) {
    for (const auto& [name, elements] : sizes)
      register_parameter(name, torch::full({static_cast<std::int64_t>(elements)}, 0.1F));
  }
};

// Copies of the model: the adapter's flat memory, three snapshots, the landing, five by hand for
// each of two thread counts; and four a peer. With a node process, another node with peers.
void check_memory(const StepOptions& options) {
  const std::size_t nodes = options.attached ? 2 : 1;
  require_memory(4 * options.parameters * (10 + nodes * (6 + 4 * options.peers)));
}

// A trainer in this process and its peers in others.
class Trainer {
 public:
  Trainer(const TensorSizes& tensors, std::size_t peers, const NodeSettings& settings)
      : peers_(tensors, peers, settings),
        config_(load_config(peers_.cluster_file(), node_name(0))),
        model_(tensors) {
    open_log(config_).use();
    adapter_ = make_adapter(config_, model_);
    adapter_->start();
  }

  Adapter& adapter() { return *adapter_; }
  double processor_seconds() { return peers_.processor_seconds(); }  // of the others

 private:
  StepPeers peers_;
  const Config config_;
  Model model_;
  std::unique_ptr<Adapter> adapter_;
};

void run(StepOptions options) {
  if (options.tensors > options.parameters)
    throw CLI::ValidationError("--tensors", "more tensors than parameters");
  check_memory(options);
  StepMeasured measured;
  measured.parameters = options.parameters;
  measured.tensors = options.tensors;
  measured.peers = options.peers;
  measured.transport = options.settings.transport;
  measured.threads =
      options.threads != 0 ? options.threads : machine_settings().at("cores").get<int>();
  measured.plan.seconds = options.seconds;
  measured.plan.compute_us =
      options.step_ms > 0 ? options.step_ms * 1000 : default_compute_us(4 * options.parameters);
  std::cerr << "step " << options.parameters << " parameters in " << options.tensors << " tensors, "
            << measured.threads << " thread(s), " << time_text(measured.plan.compute_us)
            << " of computing a step" << std::endl;

  at::set_num_threads(measured.threads);
  const TensorSizes tensors = tensor_sizes(options.parameters, options.tensors);
  Trainer embedded(tensors, options.peers, options.settings);
  std::optional<Trainer> attached;
  std::vector<Adapter*> adapters{&embedded.adapter()};
  if (options.attached) {
    NodeSettings settings = options.settings;
    settings.daemon = true;
    attached.emplace(tensors, options.peers, settings);
    adapters.push_back(&attached->adapter());
  }
  const auto processor_seconds = [&] {
    return embedded.processor_seconds() + (attached ? attached->processor_seconds() : 0);
  };

  std::vector<std::unique_ptr<HandWritten>> loops;
  measured.hand_threads = {1};
  if (measured.threads > 1) measured.hand_threads.push_back(measured.threads);
  for (const int threads : measured.hand_threads)
    loops.push_back(std::make_unique<HandWritten>(4 * options.parameters, threads));
  NoiseWatch watch;
  watch.also_used(-processor_seconds());
  auto steps = run_steps(adapters, measured.plan, loops, measured.hand, [](std::size_t count) {
    std::cerr << "   " << count << " steps" << std::endl;
  });
  measured.steps = std::move(steps.front());
  if (attached) measured.attached_steps = std::move(steps.back());
  watch.also_used(processor_seconds());
  measured.noise = watch.judge(spread_by_hand(measured));
  for (Adapter* adapter : adapters) adapter->leave();
  warn_when_noisy(measured.noise, std::cerr);
  const Json document = step_document(measured);
  if (options.json) {
    std::cout << document.dump(2) << '\n';
  } else {
    print_step(document, std::cout);
  }
}

int parse_and_run(int argc, char** argv) {
  StepOptions options;
  CLI::App app("What adapter->step adds to a training step, beside a hand-written loop.",
               "dpwa-bench step");
  cli::format_help(app);
  app.set_version_flag("--version", "dpwa-bench " + std::string(version()),
                       "Print the version and exit");
  add_count_option(app, "--parameters", options.parameters, "float32 parameters of the model");
  add_count_option(app, "--tensors", options.tensors, "Number of tensors that hold them");
  app.add_option("--peers", options.peers, "Nodes that serve, each a process")
      ->check(CLI::Range(1, 16))
      ->capture_default_str();
  app.add_option("--transport", options.settings.transport, "How parameters travel")
      ->check(CLI::IsMember({"tcp", "same_host"}))
      ->capture_default_str();
  app.add_option("--threads", options.threads, "Threads of torch and of the hand-written loop")
      ->check(CLI::Range(1, 256))
      ->default_str("one for each core");
  app.add_option("--seconds", options.seconds, "How long to measure")
      ->check(CLI::Range(0.01, 600.0))
      ->capture_default_str();
  app.add_option("--step-time", options.step_ms, "Compute time of a step in ms, as a busy wait")
      ->check(CLI::Range(0.0, 60000.0))
      ->default_str("the longest time of a pull");
  app.add_flag("--attached", options.attached,
               "Also, step by step in turn, a trainer that is attached to a node process");
  app.add_flag("--json", options.json, "Print one JSON document instead of text");
  app.callback([&options] { run(options); });
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error, std::cout, std::cerr);
    std::cerr << "dpwa-bench step: " << cli::usage_problem(app, error)
              << " (see dpwa-bench step --help)\n";
    return 2;
  }
  return 0;
}

}  // namespace
}  // namespace dpwa::bench

int main(int argc, char** argv) {
  try {
    return dpwa::end_output("dpwa-bench step", dpwa::bench::parse_and_run(argc, argv));
  } catch (const dpwa::ConfigError& error) {
    std::cerr << "dpwa-bench step: " << dpwa::one_line(error) << '\n';
    return 2;
  } catch (const std::exception& error) {
    std::cerr << "dpwa-bench step: " << dpwa::one_line(error) << '\n';
    return 1;
  }
}
