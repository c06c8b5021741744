#include "bench/step/step_report.h"

#include <algorithm>
#include <ostream>
#include <utility>

#include "bench/measure/machine.h"
#include "bench/measure/statistics.h"
#include "bench/quantity.h"
#include "bench/worker/measurement.h"

namespace dpwa::bench {
namespace {

constexpr std::size_t windows = 5;

std::vector<double> column(const std::vector<StepTimes>& steps,
                           const std::function<double(const StepTimes&)>& value) {
  std::vector<double> values;
  for (const StepTimes& step : steps) values.push_back(value(step));
  return values;
}

Json quantiles(const std::vector<double>& values) {
  return {{"median", quantile(values, 0.5)}, {"p99", quantile(values, 0.99)}};
}

double total(const StepTimes& step) {
  return step.send + step.wait;
}

// The medians of consecutive parts of a course.
Range range_over_time(const std::vector<double>& values) {
  std::vector<double> medians;
  const std::size_t parts = std::min(windows, values.size());
  for (std::size_t i = 0; i < parts; ++i) {
    const auto from = values.begin() + static_cast<std::ptrdiff_t>(values.size() * i / parts);
    const auto to = values.begin() + static_cast<std::ptrdiff_t>(values.size() * (i + 1) / parts);
    medians.push_back(quantile({from, to}, 0.5));
  }
  return range_of(medians);
}

Json group_of(const std::vector<StepTimes>& all, bool arrived) {
  std::vector<StepTimes> steps;
  std::ranges::copy_if(all, std::back_inserter(steps),
                       [&](const StepTimes& step) { return step.arrived == arrived; });
  Json group = {{"steps", steps.size()}};
  if (steps.empty()) return group;
  group["send_us"] = quantiles(column(steps, [](const StepTimes& step) { return step.send; }));
  group["wait_us"] = quantiles(column(steps, [](const StepTimes& step) { return step.wait; }));
  group["step_us"] = quantiles(column(steps, total));
  group["windows"] = {{"count", std::min(windows, steps.size())},
                      {"step_us", json_of(range_over_time(column(steps, total)))}};
  return group;
}

// The fastest of the thread counts, by its median.
double best(const std::vector<HandTimes>& hand, std::vector<double> HandTimes::*times) {
  double least = 1e300;
  for (const HandTimes& one : hand) least = std::min(least, quantile(one.*times, 0.5));
  return least;
}

Json hand_written_of(const StepMeasured& measured) {
  Json all = Json::array();
  for (std::size_t i = 0; i < measured.hand.size(); ++i) {
    const HandTimes& times = measured.hand[i];
    all.push_back({{"threads", measured.hand_threads[i]},
                   {"copy_us", quantiles(times.copy)},
                   {"copy_and_blend_us", quantiles(times.copy_and_blend)},
                   {"blend_and_copy_us", quantiles(times.blend_and_copy)}});
  }
  return all;
}

// What the same step takes with a node process, and how much longer that is.
void add_attached(const std::vector<StepTimes>& steps, Json& document) {
  Json& attached = document["attached"] = Json::object();
  for (const bool arrived : {true, false}) {
    const char* key = arrived ? "arrived" : "not_arrived";
    attached[key] = group_of(steps, arrived);
    const Json& embedded = document.at(key);
    if (!attached[key].contains("step_us") || !embedded.contains("step_us")) continue;
    attached[key]["beyond_embedded_us"] = attached[key].at("step_us").at("median").get<double>() -
                                          embedded.at("step_us").at("median").get<double>();
  }
}

void print_group(const Json& group, std::ostream& out) {
  const auto both = [](const Json& entry) {
    return time_text(entry.at("median")) + " median, " + time_text(entry.at("p99")) + " p99";
  };
  out << group.at("steps") << " steps\n";
  if (!group.contains("step_us")) return;
  out << "  update_send       " << both(group.at("send_us")) << '\n';
  out << "  update_wait       " << both(group.at("wait_us")) << '\n';
  out << "  both              " << both(group.at("step_us")) << '\n';
  if (!group.contains("beyond_embedded_us")) return;
  out << "  beyond embedded   " << number_text(group.at("beyond_embedded_us"), 1) << " us\n";
}

}  // namespace

double spread_by_hand(const StepMeasured& measured) {
  return spread_of(range_over_time(measured.hand.front().copy));
}

Json step_document(const StepMeasured& measured) {
  Json document = {{"kind", "step"},
                   {"parameters", measured.parameters},
                   {"tensors", measured.tensors},
                   {"bytes", 4 * measured.parameters},
                   {"nodes", measured.peers + 1},
                   {"transport", measured.transport},
                   {"threads", measured.threads},
                   {"compute_us", measured.plan.compute_us},
                   {"steps", measured.steps.size()},
                   {"arrived", group_of(measured.steps, true)},
                   {"not_arrived", group_of(measured.steps, false)},
                   {"hand_written", hand_written_of(measured)}};
  const auto ratio = [&](const char* group, std::vector<double> HandTimes::*times) {
    const Json& entry = document.at(group);
    if (!entry.contains("step_us")) return Json(nullptr);
    return Json(best(measured.hand, times) / entry.at("step_us").at("median").get<double>());
  };
  if (!measured.attached_steps.empty()) add_attached(measured.attached_steps, document);
  document["ratio_to_hand_written"] = ratio("arrived", &HandTimes::copy_and_blend);
  document["ratio_to_one_pass"] = ratio("arrived", &HandTimes::blend_and_copy);
  document["publish_ratio_to_copy"] = ratio("not_arrived", &HandTimes::copy);
  document["waited_us_max"] =
      range_of(column(measured.steps, [](const StepTimes& step) { return step.waited; })).max;
  const auto count = [&](std::uint64_t StepTimes::*member) {
    const auto values = column(
        measured.steps, [&](const StepTimes& step) { return static_cast<double>(step.*member); });
    return Json{{"median", quantile(values, 0.5)}, {"max", range_of(values).max}};
  };
  document["allocations_per_step"] = {{"trainer", count(&StepTimes::allocations)},
                                      {"process", count(&StepTimes::all_allocations)}};
  document["noise"] = json_of(measured.noise);
  document["settings"] = machine_settings();
  return document;
}

void print_step(const Json& document, std::ostream& out) {
  const auto both = [](const Json& entry) {
    return time_text(entry.at("median")) + " median, " + time_text(entry.at("p99")) + " p99";
  };
  for (const auto& [key, words] : {std::pair("arrived", "a pull had arrived: "),
                                   std::pair("not_arrived", "none had arrived: ")}) {
    out << words;
    print_group(document.at(key), out);
    if (!document.contains("attached")) continue;
    out << "with a node process, " << words;
    print_group(document.at("attached").at(key), out);
  }
  for (const Json& hand : document.at("hand_written")) {
    out << "by hand, " << hand.at("threads") << " thread(s)\n";
    out << "  copy              " << both(hand.at("copy_us")) << '\n';
    out << "  copy, then blend  " << both(hand.at("copy_and_blend_us")) << '\n';
    out << "  both in one pass  " << both(hand.at("blend_and_copy_us")) << '\n';
  }
  const auto ratio = [&](const char* key) {
    return document.at(key).is_null() ? std::string("-") : number_text(document.at(key), 2);
  };
  out << "by hand / step      " << ratio("ratio_to_hand_written") << " with a pull (one pass "
      << ratio("ratio_to_one_pass") << "), " << ratio("publish_ratio_to_copy") << " without\n";
  const Json& allocations = document.at("allocations_per_step");
  out << "allocations a step  " << allocations.at("trainer").at("median") << " by the trainer, "
      << allocations.at("process").at("median") << " in the process\n";
}

}  // namespace dpwa::bench
