#include "bench/collective/step_comparison.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <ostream>

#include "bench/collective/scratch_folder.h"
#include "bench/measure/process_memory.h"
#include "bench/quantity.h"
#include "bench/worker/child.h"
#include "dpwa/net/free_ports.h"

namespace dpwa::bench {
namespace {

constexpr std::int64_t steps_to_warm_up = 5;  // buckets are rearranged after the first

// The processes of one side.
class Nodes {
 public:
  // `job(rank)`: what each is told.
  Nodes(const std::vector<std::string>& command, std::size_t count,
        const std::function<Json(std::size_t)>& job) {
    for (std::size_t rank = 0; rank < count; ++rank) {
      processes_.push_back(std::make_unique<Child>(command));
      processes_.back()->send(job(rank));
    }
    for (auto& process : processes_) {
      const Json ready = process->receive();
      parameters_ = ready.at("parameters");
      torch_ = ready.at("torch");
    }
    cpu_s_.resize(count);
  }

  std::uint64_t parameters() const { return parameters_; }
  const std::string& torch() const { return torch_; }
  double loss() const { return loss_; }
  double cpu_s() const {
    double sum = 0;
    for (const double one : cpu_s_) sum += one;
    return sum;
  }

  // The times of all nodes.
  std::vector<double> run(const Json& command) {
    for (auto& process : processes_) process->send(command);
    std::vector<double> times;
    for (std::size_t rank = 0; rank < processes_.size(); ++rank) {
      const Json answer = processes_[rank]->receive();
      const auto more = answer.at("times_us").get<std::vector<double>>();
      times.insert(times.end(), more.begin(), more.end());
      cpu_s_[rank] = answer.at("cpu_s");
      if (rank == 0) loss_ = answer.value("loss", loss_);
    }
    return times;
  }
  std::vector<double> steps(std::int64_t count, bool communicate) {
    return run({{"do", "steps"}, {"count", count}, {"communicate", communicate}});
  }
  std::vector<double> allreduces(std::int64_t count) {
    return run({{"do", "allreduce"}, {"count", count}});
  }

 private:
  std::vector<std::unique_ptr<Child>> processes_;
  std::vector<double> cpu_s_;
  std::uint64_t parameters_ = 0;
  std::string torch_;
  double loss_ = 0;
};

void write_cluster_file(const std::string& path, std::size_t nodes) {
  std::ofstream file(path);
  file << "cluster: bench\nbackend: collective\nlog: {level: warn}\nnodes:\n";
  const auto ports = net::free_ports(nodes);
  for (std::size_t i = 0; i < nodes; ++i)
    file << "  - {name: w" << i + 1 << ", host: 127.0.0.1, port: " << ports[i] << "}\n";
}

Json job_of(const StepSettings& settings, std::size_t rank) {
  return {{"rank", rank},
          {"nodes", settings.nodes},
          {"model", settings.model},
          {"batch", settings.batch},
          {"threads", settings.threads},
          {"seed", settings.seed}};
}

std::unique_ptr<Nodes> start_dpwa(const StepSettings& settings, const std::string& folder) {
  const std::string cluster = folder + "/cluster.yaml";
  write_cluster_file(cluster, settings.nodes);
  const auto port = net::free_ports(1).front();
  const auto program = (program_folder() / "dpwa-bench-collective").string();
  return std::make_unique<Nodes>(std::vector{program, std::string("step-worker")}, settings.nodes,
                                 [&](std::size_t rank) {
                                   Json job = job_of(settings, rank);
                                   job["config"] = cluster;
                                   job["name"] = "w" + std::to_string(rank + 1);
                                   job["store_port"] = port;
                                   return job;
                                 });
}

std::unique_ptr<Nodes> start_ddp(const StepSettings& settings, const std::string& folder) {
  return std::make_unique<Nodes>(std::vector{settings.torch_python, settings.ddp_script},
                                 settings.nodes, [&](std::size_t rank) {
                                   Json job = job_of(settings, rank);
                                   job["store"] = folder + "/store";
                                   return job;
                                 });
}

double spread_of_column(const std::vector<StepWindow>& all, double StepWindow::*column) {
  std::vector<double> values;
  for (const StepWindow& window : all) values.push_back(window.*column);
  return spread_of(range_of(values));
}

}  // namespace

StepComparison compare_steps(const StepSettings& settings, std::ostream& progress) {
  StepComparison result;
  result.settings = settings;
  const ScratchFolder folder;
  const auto ours = start_dpwa(settings, folder.path());
  std::unique_ptr<Nodes> ddp;
  if (settings.torch_python.empty()) {
    result.ddp_absent = "no Python with torch was named (--torch-python)";
  } else {
    try {
      ddp = start_ddp(settings, folder.path());
    } catch (const std::exception& error) {
      result.ddp_absent = error.what();
    }
  }
  result.parameters = ours->parameters();
  result.torch = ours->torch();
  if (ddp) result.ddp_torch = ddp->torch();

  // A comparison of the losses shows that both do the same: after the same number of steps.
  std::vector<double> first = ours->steps(steps_to_warm_up, true);
  result.loss = ours->loss();
  if (ddp) {
    ddp->steps(steps_to_warm_up, true);
    result.ddp_loss = ddp->loss();
  }
  const double length = settings.seconds / settings.windows;
  const auto count = steps_of_window(length, quantile(first, 0.5));
  ours->allreduces(count);

  const auto used = [&] { return ours->cpu_s() + (ddp ? ddp->cpu_s() : 0); };
  NoiseWatch watch;
  watch.also_used(-used());
  for (int i = 1; i <= settings.windows; ++i) {
    StepWindow window;
    const auto run = [&](Nodes& nodes, std::vector<double>& all, double& step, double& cpu) {
      const double before = nodes.cpu_s();
      const auto times = nodes.steps(count, true);
      all.insert(all.end(), times.begin(), times.end());
      step = quantile(times, 0.5);
      // One step more than was timed.
      const auto steps = static_cast<double>(settings.nodes) * static_cast<double>(count + 1);
      cpu = 1e6 * (nodes.cpu_s() - before) / steps;
    };
    run(*ours, result.steps_us, window.step, window.step_cpu);
    if (ddp) run(*ddp, result.ddp_steps_us, window.ddp_step, window.ddp_step_cpu);
    window.local = quantile(ours->steps(count, false), 0.5);
    if (ddp) window.ddp_local = quantile(ddp->steps(count, false), 0.5);
    window.allreduce = quantile(ours->allreduces(count), 0.5);
    progress << "   window " << i << "/" << settings.windows << "  collective "
             << time_text(window.step)
             << (ddp ? "  DDP " + time_text(window.ddp_step) : std::string()) << "  alone "
             << time_text(window.local) << "  all-reduce " << time_text(window.allreduce)
             << std::endl;
    result.windows.push_back(window);
  }
  watch.also_used(used());
  double spread = spread_of_column(result.windows, &StepWindow::step);
  if (ddp) spread = std::max(spread, spread_of_column(result.windows, &StepWindow::ddp_step));
  result.noise = watch.judge(spread);
  return result;
}

}  // namespace dpwa::bench
