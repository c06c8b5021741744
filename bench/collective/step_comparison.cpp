#include "bench/collective/step_comparison.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <memory>
#include <ostream>
#include <string>

#include "bench/measure/machine.h"
#include "bench/quantity.h"
#include "bench/scratch_folder.h"
#include "bench/worker/child.h"
#include "bench/worker/measurement.h"
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

using Value = std::function<double(const StepWindow&)>;

Json range_over(const StepComparison& measured, const Value& value) {
  std::vector<double> values;
  for (const StepWindow& window : measured.windows) values.push_back(value(window));
  return json_of(range_of(values));
}

Json side(const StepComparison& measured, const std::vector<double>& steps,
          double StepWindow::*step, double StepWindow::*local, double StepWindow::*cpu) {
  const auto hidden = [&](const StepWindow& window) {
    return hidden_share(window.*step, window.*local, window.allreduce);
  };
  return {{"steps", steps.size()},
          {"step_us", {{"median", quantile(steps, 0.5)}, {"p99", quantile(steps, 0.99)}}},
          {"cpu_us", range_over(measured, [&](const StepWindow& w) { return w.*cpu; })},
          {"local_step_us", range_over(measured, [&](const StepWindow& w) { return w.*local; })},
          {"hidden_share", range_over(measured, hidden)},
          {"windows",
           {{"count", measured.windows.size()},
            {"step_us", range_over(measured, [&](const StepWindow& w) { return w.*step; })}}}};
}

std::string spread_text(const Json& range, const std::function<std::string(double)>& text) {
  return text(range.at("median")) + " (" + text(range.at("min")) + " to " + text(range.at("max")) +
         ")";
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

double hidden_share(double step, double local, double allreduce) {
  if (allreduce <= 0) return 0;
  return std::min(1.0, 1 - (step - local) / allreduce);
}

std::int64_t steps_of_window(double seconds, double step_us) {
  constexpr double fewest = 4;
  constexpr double most = 100'000;
  return std::llround(std::clamp(1e6 * seconds / std::max(step_us, 1.0), fewest, most));
}

Json step_comparison_document(const StepComparison& measured) {
  const StepSettings& settings = measured.settings;
  Json document = {{"kind", "collective"},
                   {"model", settings.model},
                   {"parameters", measured.parameters},
                   {"bytes", 4 * measured.parameters},
                   {"nodes", settings.nodes},
                   {"engine", "gloo"},
                   {"threads", settings.threads},
                   {"batch", settings.batch},
                   {"seed", settings.seed},
                   {"torch", measured.torch}};
  document["dpwa"] = side(measured, measured.steps_us, &StepWindow::step, &StepWindow::local,
                          &StepWindow::step_cpu);
  document["dpwa"]["loss"] = measured.loss;
  document["allreduce_us"] = range_over(measured, [](const StepWindow& w) { return w.allreduce; });
  if (measured.ddp_absent.empty()) {
    document["ddp"] = side(measured, measured.ddp_steps_us, &StepWindow::ddp_step,
                           &StepWindow::ddp_local, &StepWindow::ddp_step_cpu);
    document["ddp"]["loss"] = measured.ddp_loss;
    document["ddp"]["torch"] = measured.ddp_torch;
    document["ratio_to_ddp"] =
        range_over(measured, [](const StepWindow& w) { return w.step / w.ddp_step; });
  } else {
    document["ddp"] = {{"absent", measured.ddp_absent}};
    document["ratio_to_ddp"] = nullptr;
  }
  document["noise"] = json_of(measured.noise);
  document["settings"] = machine_settings();
  return document;
}

void print_step_comparison(const Json& document, std::ostream& out) {
  const auto time = [](double value) { return time_text(value); };
  const auto figure = [](double value) { return number_text(value, 2); };
  const auto print_side = [&](const char* key, const char* name) {
    const Json& one = document.at(key);
    out << name << '\n';
    if (one.contains("absent")) {
      out << "  absent            " << one.at("absent").get<std::string>() << '\n';
      return;
    }
    out << "  step              " << spread_text(one.at("windows").at("step_us"), time) << ", "
        << one.at("steps") << " steps\n";
    out << "  processor time    " << spread_text(one.at("cpu_us"), time) << " a node\n";
    out << "  without exchange  " << spread_text(one.at("local_step_us"), time) << '\n';
    out << "  exchange hidden   " << spread_text(one.at("hidden_share"), figure) << '\n';
  };
  print_side("dpwa", "backend collective");
  print_side("ddp", "DistributedDataParallel");
  out << "all-reduce alone    " << spread_text(document.at("allreduce_us"), time) << '\n';
  if (!document.at("ratio_to_ddp").is_null())
    out << "collective / DDP    " << spread_text(document.at("ratio_to_ddp"), figure) << '\n';
}

}  // namespace dpwa::bench
