#include <stdlib.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "bench/commands.h"
#include "bench/kvstore/store_group.h"
#include "bench/kvstore/store_peers.h"
#include "bench/kvstore/store_report.h"
#include "bench/measure/machine.h"
#include "bench/pull/pull_group.h"
#include "bench/quantity.h"
#include "bench/scratch_folder.h"

namespace dpwa::bench {
namespace {

constexpr std::uint64_t pushes_to_warm_up = 3;
constexpr double fewest_pushes = 3;  // of a window
constexpr double most_pushes = 1e6;

struct StoreOptions {
  StoreSettings settings;
  double seconds = 3;  // of the windows of each of those that take turns
  std::string torch_python;
  std::string gloo_script;
  std::string ps_lite;
  bool json = false;
};

struct RunningPeer {
  StepPeer result;
  std::unique_ptr<StepPeers> processes;  // null: absent
};

RunningPeer start_peer(const std::string& key,
                       const std::function<std::unique_ptr<StepPeers>()>& start) {
  RunningPeer peer;
  peer.result.key = key;
  try {
    peer.processes = start();
    peer.result.name = peer.processes->name();
    peer.processes->steps(1);
  } catch (const std::exception& error) {
    peer.result.absent = error.what();
    peer.processes.reset();
  }
  return peer;
}

std::vector<RunningPeer> start_peers(const StoreOptions& options, const std::string& folder) {
  const StoreSettings& settings = options.settings;
  std::vector<RunningPeer> peers;
  if (!options.torch_python.empty()) {
    peers.push_back(start_peer("gloo", [&] {
      return start_gloo(options.torch_python, options.gloo_script, settings.workers, settings.bytes,
                        folder);
    }));
  }
  if (!options.ps_lite.empty()) {
    peers.push_back(start_peer("ps_lite", [&] {
      return start_ps_lite(options.ps_lite, settings.workers, settings.servers, settings.bytes);
    }));
  }
  return peers;
}

std::uint64_t count_for(double seconds, double push_us) {
  return static_cast<std::uint64_t>(
      std::clamp(1e6 * seconds / std::max(push_us, 1.0), fewest_pushes, most_pushes));
}

void run_window(RunningPeer& peer, double seconds, NoiseWatch& watch) {
  StepPeer& result = peer.result;
  const double known =
      result.times_us.empty() ? quantile(peer.processes->steps(1), 0.5) : result.window_us.back();
  const double before = peer.processes->cpu_s();
  const auto times = peer.processes->steps(count_for(seconds, known));
  const double used = peer.processes->cpu_s() - before;
  watch.also_used(used);
  result.cpu_s += used;
  result.times_us.insert(result.times_us.end(), times.begin(), times.end());
  result.window_us.push_back(quantile(times, 0.5));
}

// Store, bare sockets and peers in windows that take turns, so that a machine that drifts does so
// under all.
StoreMeasured measure_store(const StoreOptions& options, std::ostream& progress) {
  const StoreSettings& settings = options.settings;
  const ScratchFolder folder;
  StoreGroup store(settings);
  std::unique_ptr<Group> raw;
  StoreMeasured measured{{"store", &store.group(), {}}, {}, {}, {}, {}, {}};
  if (settings.ping_pong) {
    Topology topology;
    topology.bytes = settings.bytes;
    topology.ping_pong = true;
    raw = make_raw_group(topology, "ping_pong");
    measured.raw.push_back({"raw", raw.get(), {}});
    raw->run(0.05, false);
  }
  auto peers = start_peers(options, folder.path());
  const auto first = store.group().run_times(pushes_to_warm_up, false);
  const int windows = options.seconds >= 1 ? 5 : 3;
  const double length = options.seconds / windows;
  auto count = count_for(std::min(length, 0.2), first.latency_us);
  count = count_for(length, store.group().run_times(count, false).latency_us);
  NoiseWatch watch;
  for (int i = 1; i <= windows; ++i) {
    measured.store.windows.push_back(store.group().run_times(count));
    const GroupWindow& window = measured.store.windows.back();
    watch.also_used(window.cpu_s);
    std::string line = "   window " + std::to_string(i) + "/" + std::to_string(windows) +
                       "  store " + time_text(window.latency_us);
    for (Series& series : measured.raw) {
      series.windows.push_back(series.group->run(length));
      watch.also_used(series.windows.back().cpu_s);
      line += "  bare sockets " + time_text(series.windows.back().latency_us);
    }
    for (RunningPeer& peer : peers) {
      if (!peer.processes) continue;
      run_window(peer, length, watch);
      line += "  " + peer.result.name + " " + time_text(peer.result.window_us.back());
    }
    if (options.seconds > 1) progress << line << std::endl;
  }
  measured.reports = store.group().reports();
  if (raw) measured.raw_reports = raw->reports();
  const auto times =
      measured.store.range([](const GroupWindow& window) { return window.latency_us; });
  measured.noise = watch.judge(spread_of(times));
  for (RunningPeer& peer : peers) measured.peers.push_back(std::move(peer.result));
  return measured;
}

void run_store(StoreOptions options, CommandContext& context) {
  StoreSettings& settings = options.settings;
  settings.bytes = std::max<std::uint64_t>(settings.bytes / 4 * 4, 4);
  if (const auto problem = problem_of(settings); !problem.empty())
    throw CLI::ValidationError("--type", problem);
  if (const char* program = ::getenv("DPWA_PS_LITE"); program != nullptr && options.ps_lite.empty())
    options.ps_lite = program;
  require_memory(store_group_memory(settings));
  const std::string title = title_of(settings);
  context.err << title << std::endl;
  const StoreMeasured measured = measure_store(options, context.err);
  const Json document = store_document(settings, measured);
  warn_when_noisy(measured.noise, context.err);
  if (options.json) {
    context.out << document.dump(2) << '\n';
  } else {
    context.out << title << '\n';
    print_store(document, context.out);
  }
}

}  // namespace

void add_kvstore_command(CLI::App& parent, CommandContext& context) {
  auto options = std::make_shared<StoreOptions>();
  StoreSettings& settings = options->settings;
  CLI::App* command = parent.add_subcommand(
      "kvstore", "Workers that push to the servers of a store, and take the value that comes back");
  add_size_option(*command, "--bytes", settings.bytes, "Size of the float32 value, or of all");
  command->add_option("--workers", settings.workers, "Workers, each a process")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  command->add_option("--servers", settings.servers, "Servers, each a process")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  command
      ->add_option("--keys", settings.keys,
                   "Parts of the value that are keys of their own, and grow in equal steps")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  command->add_option("--replicas", settings.replicas, "kvstore.replicas")
      ->check(CLI::Range(0, 1))
      ->capture_default_str();
  command->add_option("--type", settings.type, "kvstore.type")
      ->check(CLI::IsMember({"dist_sync", "dist_async"}))
      ->capture_default_str();
  command->add_option("--transport", settings.transport, "How values travel")
      ->check(CLI::IsMember({"tcp", "same_host"}))
      ->capture_default_str();
  command->add_option("--optimizer", settings.optimizer, "Optimizer of the servers")
      ->check(CLI::IsMember({"none", "sgd", "momentum", "nesterov", "adam", "adamw"}))
      ->capture_default_str();
  command
      ->add_option("--compression", settings.compression, "kvstore.compression.type of the pushes")
      ->check(CLI::IsMember({"none", "fp16", "2bit"}))
      ->capture_default_str();
  command->add_flag("--ping-pong", settings.ping_pong,
                    "For the latency of small sizes: each process on a core of its own, in turn "
                    "with bare sockets");
  auto* python = command
                     ->add_option("--torch-python", options->torch_python,
                                  "A Python that has torch, for the same step by Gloo's all-reduce")
                     ->default_str("none: it is left out");
  auto* script = command
                     ->add_option("--gloo-script", options->gloo_script,
                                  "Script for that Python: bench/peers/c10d_step.py")
                     ->check(CLI::ExistingFile);
  python->needs(script);
  script->needs(python);
  command
      ->add_option("--ps-lite", options->ps_lite,
                   "The built bench/peers/ps_lite_push_pull.cpp (default: $DPWA_PS_LITE)")
      ->check(CLI::ExistingFile);
  command->add_option("--seconds", options->seconds, "How long to measure each of those in turn")
      ->check(CLI::Range(0.01, 600.0))
      ->capture_default_str();
  command->add_flag("--json", options->json, "Print one JSON document instead of text");
  command->callback([options, &context] { run_store(*options, context); });
}

}  // namespace dpwa::bench
