#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <memory>
#include <optional>
#include <ostream>

#include "bench/commands.h"
#include "bench/measure/machine.h"
#include "bench/measure/process_memory.h"
#include "bench/memory/passes.h"
#include "bench/quantity.h"
#include "bench/worker/measurement.h"
#include "dpwa/cli/text_table.h"

namespace dpwa::bench {
namespace {

constexpr int windows = 5;
constexpr double window_seconds = 0.06;
constexpr std::size_t vectors_a_thread = 5;

struct MemoryOptions {
  std::uint64_t bytes = 100'000'000;
  unsigned threads = 0;  // 0 = one for each core
  bool json = false;
};

std::vector<unsigned> thread_counts(const MemoryOptions& options, const Json& settings) {
  const unsigned all =
      options.threads != 0 ? options.threads : settings.at("cores").get<unsigned>();
  return all > 1 ? std::vector<unsigned>{1, all} : std::vector<unsigned>{1};
}

// All passes of one dtype with one number of threads. Their windows take turns, so that a machine
// that drifts does so under all.
std::vector<Json> measure_passes(DType dtype, unsigned threads, std::uint64_t bytes,
                                 double& worst_spread) {
  std::vector<Vectors> vectors;
  for (unsigned i = 0; i < threads; ++i) vectors.emplace_back(bytes / threads / 64 * 64, dtype, i);
  std::vector<Pass> passes = memory_passes();
  std::erase_if(passes, [dtype](const Pass& pass) { return pass.dtype != dtype; });
  std::vector<std::vector<double>> rates(passes.size());
  for (int window = 0; window < windows; ++window) {
    for (std::size_t i = 0; i < passes.size(); ++i)
      rates[i].push_back(rate_of(passes[i], vectors, window_seconds));
  }
  std::vector<Json> results;
  for (std::size_t i = 0; i < passes.size(); ++i) {
    const Pass& pass = passes[i];
    const Range range = range_of(rates[i]);
    worst_spread = std::max(worst_spread, spread_of(range));
    results.push_back({{"name", pass.name},
                       {"dtype", name_of(dtype)},
                       {"threads", threads},
                       {"meaning", pass.meaning},
                       {"gb_per_s", range.median},
                       {"windows", {{"count", windows}, {"gb_per_s", json_of(range)}}}});
  }
  return results;
}

void print_table(const Json& results, std::ostream& out) {
  cli::TextTable table({"pass", "dtype", "threads", "GB/s", "lowest", "highest", "meaning"});
  for (const Json& one : results) {
    const Json& range = one.at("windows").at("gb_per_s");
    table.add({one.at("name"), one.at("dtype"), one.at("threads").dump(),
               number_text(one.at("gb_per_s"), 1), number_text(range.at("min"), 1),
               number_text(range.at("max"), 1), one.at("meaning")});
  }
  table.print(out);
}

void run_memory(const MemoryOptions& options, CommandContext& context) {
  require_memory(vectors_a_thread * options.bytes);
  const Json settings = machine_settings();
  const std::string title = "memory " + size_text(options.bytes);
  context.err << title << std::endl;
  Json results = Json::array();
  double spread = 0;
  const NoiseWatch watch;
  for (const DType dtype : {DType::float32, DType::float64, DType::float16, DType::bfloat16}) {
    for (const unsigned threads : thread_counts(options, settings)) {
      context.err << "   " << name_of(dtype) << ", " << threads
                  << (threads == 1 ? " thread" : " threads") << std::endl;
      for (Json& one : measure_passes(dtype, threads, options.bytes, spread))
        results.push_back(std::move(one));
    }
  }
  const Noise noise = watch.judge(spread);
  warn_when_noisy(noise, context.err);
  if (!options.json) {
    print_table(results, context.out);
    return;
  }
  const Json document = {{"kind", "memory"},
                         {"bytes", options.bytes},
                         {"results", results},
                         {"noise", json_of(noise)},
                         {"settings", settings}};
  context.out << document.dump(2) << '\n';
}

}  // namespace

void add_memory_command(CLI::App& parent, CommandContext& context) {
  auto options = std::make_shared<MemoryOptions>();
  CLI::App* command =
      parent.add_subcommand("memory", "What the memory of this machine gives: copy, blend, land");
  add_size_option(*command, "--bytes", options->bytes, "Size of a vector, all threads together");
  command->add_option("--threads", options->threads, "Threads, beside one")
      ->check(CLI::Range(1U, 256U))
      ->default_str("one for each core");
  command->add_flag("--json", options->json, "Print one JSON document instead of a table");
  command->callback([options, &context] { run_memory(*options, context); });
}

}  // namespace dpwa::bench
