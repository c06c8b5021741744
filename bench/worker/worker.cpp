#include "bench/worker/worker.h"

#include <unistd.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <chrono>
#include <exception>
#include <stdexcept>

#include "bench/commands.h"
#include "bench/measure/machine.h"
#include "bench/measure/statistics.h"
#include "interpolation/kernels/kernels.h"

namespace dpwa::bench {
namespace {

std::unique_ptr<Worker> make_worker(const Json& job) {
  const std::string kind = job.at("kind");
  if (kind == "raw") return make_raw_worker(job);
  if (kind == "node") return make_node_process(job);
  if (kind == "store_worker") return make_store_worker(job);
  if (kind == "store_server") return make_store_server(job);
  return make_pull_worker(job);
}

class Session {
 public:
  explicit Session(const Json& job) {
    if (job.contains("core")) pin_to_core(job.at("core").get<std::size_t>());
    if (job.contains("instruction_set"))
      kernels::use_instruction_set(job.at("instruction_set").get<std::string>());
    worker_ = make_worker(job);
  }

  Json answer(const Json& command) {
    const std::string what = command.at("do");
    if (what == "mark") return mark();
    if (what == "pull") return pull(command);
    if (what == "report") return report();
    throw std::logic_error("unknown command " + what);
  }

 private:
  static Json mark() {
    return {{"cpu_s", processor_seconds()}, {"tcp_bytes", open_sockets().bytes_received}};
  }

  Json pull(const Json& command) {
    const Window window = command.contains("count") ? worker_->pull_times(command.at("count"))
                                                    : worker_->pull_for(command.at("seconds"));
    if (command.at("record")) {
      latency_us_.insert(latency_us_.end(), window.latency_us.begin(), window.latency_us.end());
      trainer_latency_us_.insert(trainer_latency_us_.end(), window.trainer_latency_us.begin(),
                                 window.trainer_latency_us.end());
    }
    return {{"pulls", window.pulls},
            {"bytes", window.bytes},
            {"seconds", window.seconds},
            {"latency_us", quantile(window.latency_us, 0.5)},
            {"failed", window.failed}};
  }

  Json report() const {
    const MappedMemory mapped = mapped_memory();
    return {{"latency_us", latency_us_},
            {"trainer_latency_us", trainer_latency_us_},
            {"peak_rss_kib", peak_resident_kib()},
            {"peers_mapped_kib", mapped.peers_kib},
            {"huge_kib", mapped.huge_kib},
            {"congestion_control", open_sockets().congestion_controls}};
  }

  std::unique_ptr<Worker> worker_;
  std::vector<double> latency_us_;
  std::vector<double> trainer_latency_us_;
};

}  // namespace

Window Worker::pull_for(double seconds) {
  using SteadyClock = std::chrono::steady_clock;
  Window window;
  const auto begun = SteadyClock::now();
  const auto end = begun + std::chrono::duration<double>(seconds);
  do {
    pull_once(window);
    window.seconds = std::chrono::duration<double>(SteadyClock::now() - begun).count();
  } while (SteadyClock::now() < end);
  return window;
}

Window Worker::pull_times(std::uint64_t count) {
  using SteadyClock = std::chrono::steady_clock;
  Window window;
  const auto begun = SteadyClock::now();
  for (std::uint64_t i = 0; i < count; ++i) pull_once(window);
  window.seconds = std::chrono::duration<double>(SteadyClock::now() - begun).count();
  return window;
}

int run_worker() {
  JsonLines lines(STDIN_FILENO, STDOUT_FILENO);
  try {
    const auto job = lines.receive();
    if (!job) return 0;
    Session session(*job);
    lines.send({{"ready", true}});
    while (const auto command = lines.receive()) lines.send(session.answer(*command));
    return 0;
  } catch (const std::exception& error) {
    lines.send({{"error", error.what()}});
    return 1;
  }
}

void add_worker_command(CLI::App& parent, CommandContext& context) {
  CLI::App* command = parent.add_subcommand("worker", "One node of a measurement");
  command->group("");  // not shown
  command->callback([&context] { context.exit_code = run_worker(); });
}

}  // namespace dpwa::bench
