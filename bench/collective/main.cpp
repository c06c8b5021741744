// dpwa-bench-collective: a training step of backend collective beside DistributedDataParallel, and
// the engines of the back end beside one another. `dpwa-bench collective` becomes this program,
// which is one of its own because it needs LibTorch.
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <exception>
#include <iostream>
#include <string_view>

#include "adapters/collective/engine/engine.h"
#include "bench/collective/engine_comparison.h"
#include "bench/collective/step_comparison.h"
#include "bench/collective/workers.h"
#include "bench/commands.h"
#include "bench/worker/measurement.h"
#include "dpwa/base/plain_text.h"
#include "dpwa/base/standard_output.h"
#include "dpwa/base/version.h"
#include "dpwa/cli/help_format.h"
#include "dpwa/cli/usage_problem.h"

namespace dpwa::bench {
namespace {

struct CollectiveOptions {
  StepSettings step;
  std::uint64_t bytes = 100'000'000;
  int attempts = 3;
  bool engines = false;
  bool json = false;
};

// Measures until the machine was quiet, `attempts` times at most; the last, where it never was.
template <typename Measure>
auto until_quiet(int attempts, const Measure& measure) {
  auto measured = measure();
  for (int attempt = 2; attempt <= attempts && !measured.noise.reasons.empty(); ++attempt) {
    warn_when_noisy(measured.noise, std::cerr);
    std::cerr << "   attempt " << attempt << " of " << attempts << std::endl;
    measured = measure();
  }
  warn_when_noisy(measured.noise, std::cerr);
  return measured;
}

void run_engines(const CollectiveOptions& options) {
  std::vector<EngineTimes> engines;
  for (const auto& known : collective::known_engines())
    engines.push_back({known.name, known.absent, {}, {}});
  const auto measured = until_quiet(options.attempts, [&] {
    return compare_engines(engines, options.bytes / 4 * 4, options.step.nodes, options.step.seconds,
                           std::cerr);
  });
  const Json document = engine_comparison_document(measured);
  if (options.json) {
    std::cout << document.dump(2) << '\n';
  } else {
    print_engine_comparison(document, std::cout);
  }
}

void run_steps(const CollectiveOptions& options) {
  const auto measured =
      until_quiet(options.attempts, [&] { return compare_steps(options.step, std::cerr); });
  const Json document = step_comparison_document(measured);
  if (options.json) {
    std::cout << document.dump(2) << '\n';
  } else {
    print_step_comparison(document, std::cout);
  }
}

int parse_and_run(int argc, char** argv) {
  CollectiveOptions options;
  CLI::App app(
      "A training step of backend collective beside Python's DistributedDataParallel, window by "
      "window, and beside a bare all-reduce; or the engines beside one another.",
      "dpwa-bench collective");
  cli::format_help(app);
  app.set_version_flag("--version", "dpwa-bench " + std::string(version()),
                       "Print the version and exit");
  app.add_option("--model", options.step.model, "Model to train")
      ->check(CLI::IsMember({"mlp", "resnet18"}))
      ->capture_default_str();
  app.add_option("--nodes", options.step.nodes, "Nodes, each a process")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  add_count_option(app, "--batch", options.step.batch, "Samples in the batch of a node");
  app.add_option("--threads", options.step.threads, "Threads of torch in a node, on both sides")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  app.add_option("--seed", options.step.seed, "Seed of weights and data, on both sides")
      ->capture_default_str();
  auto* python = app.add_option("--torch-python", options.step.torch_python,
                                "A Python that has torch, for DistributedDataParallel")
                     ->default_str("none: it is left out");
  auto* script = app.add_option("--ddp-script", options.step.ddp_script,
                                "Script for that Python: bench/peers/ddp_step.py")
                     ->check(CLI::ExistingFile);
  python->needs(script);
  script->needs(python);
  app.add_flag("--engines", options.engines,
               "Measures an all-reduce of --bytes by each engine of this build, instead of a step");
  add_size_option(app, "--bytes", options.bytes,
                  "Size of the float32 vector that --engines reduces");
  app.add_option("--seconds", options.step.seconds, "How long to measure each of those in turn")
      ->check(CLI::Range(0.01, 600.0))
      ->capture_default_str();
  app.add_option("--windows", options.step.windows, "Number of windows of a measurement")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--attempts", options.attempts, "Measure again while the machine is noisy")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  app.add_flag("--json", options.json, "Print one JSON document instead of text");
  app.callback([&options] { options.engines ? run_engines(options) : run_steps(options); });
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error, std::cout, std::cerr);
    std::cerr << "dpwa-bench collective: " << cli::usage_problem(app, error)
              << " (see dpwa-bench collective --help)\n";
    return 2;
  }
  return 0;
}

}  // namespace
}  // namespace dpwa::bench

int main(int argc, char** argv) {
  const std::string_view role = argc > 1 ? argv[1] : "";
  try {
    if (role == "step-worker") return dpwa::bench::run_step_worker();
    if (role == "engine-worker" && argc == 3)
      return dpwa::bench::run_engine_worker(dpwa::bench::Json::parse(argv[2]));
    return dpwa::end_output("dpwa-bench collective", dpwa::bench::parse_and_run(argc, argv));
  } catch (const std::exception& error) {
    std::cerr << "dpwa-bench collective: " << dpwa::one_line(error) << '\n';
    return 1;
  }
}
