#include <algorithm>
#include <cmath>
#include <functional>
#include <ostream>

#include "bench/collective/step_comparison.h"
#include "bench/measure/machine.h"
#include "bench/quantity.h"
#include "bench/worker/measurement.h"

namespace dpwa::bench {
namespace {

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
