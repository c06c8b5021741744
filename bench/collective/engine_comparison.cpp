#include "bench/collective/engine_comparison.h"

#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <ostream>
#include <sstream>

#include "bench/measure/machine.h"
#include "bench/measure/statistics.h"
#include "bench/quantity.h"
#include "bench/worker/child.h"
#include "bench/worker/measurement.h"
#include "dpwa/net/free_ports.h"

namespace dpwa::bench {
namespace {

constexpr int windows_by_engine = 5;

// Where the shell would find a program; empty: nowhere.
std::string find_program(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string file = folder + "/" + name;
    if (::access(file.c_str(), X_OK) == 0) return file;
  }
  return {};
}

struct RankTimes {
  std::vector<double> times_us;
  double cpu_s = 0;  // of all processes
  std::string setting;
};

RankTimes result_of(Child& rank_0, std::size_t nodes) {
  const Json answer = rank_0.receive();
  return {answer.at("times_us").get<std::vector<double>>(),
          static_cast<double>(nodes) * answer.at("cpu_s").get<double>(), answer.at("setting")};
}

// Until the process has ended, so that it leaves its group in order.
void await_end(Child& child) {
  try {
    while (true) child.receive();
  } catch (const std::exception&) {
    // It has.
  }
}

RankTimes by_processes(const std::string& program, const Json& job, std::size_t nodes) {
  std::vector<std::unique_ptr<Child>> ranks;
  for (std::size_t rank = 0; rank < nodes; ++rank) {
    Json own = job;
    own["rank"] = rank;
    ranks.push_back(
        std::make_unique<Child>(std::vector<std::string>{program, "engine-worker", own.dump()}));
  }
  RankTimes window = result_of(*ranks.front(), nodes);
  for (auto& rank : ranks) await_end(*rank);
  return window;
}

RankTimes by_mpirun(const std::string& mpirun, const std::string& program, const Json& job,
                    std::size_t nodes) {
  ::setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 0);
  ::setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 0);
  Child launcher({mpirun, "-np", std::to_string(nodes), "--oversubscribe", "--bind-to", "none",
                  program, "engine-worker", job.dump()});
  RankTimes window = result_of(launcher, nodes);
  await_end(launcher);
  return window;
}

std::vector<double> medians_of(const EngineTimes& engine) {
  std::vector<double> medians;
  for (const auto& window : engine.times_us) medians.push_back(quantile(window, 0.5));
  return medians;
}

Json engine_of(const EngineComparison& measured, const EngineTimes& engine) {
  if (!engine.absent.empty()) return {{"name", engine.name}, {"absent", engine.absent}};
  const Range times = range_of(medians_of(engine));
  const auto rate = [&](double time_us) {
    return static_cast<double>(measured.bytes * measured.nodes) / 1e3 / time_us;
  };
  const Range rates{rate(times.max), rate(times.median), rate(times.min)};
  return {{"name", engine.name},
          {"setting", engine.setting},
          {"gb_per_s", rates.median},
          {"windows",
           {{"count", engine.times_us.size()},
            {"gb_per_s", json_of(rates)},
            {"allreduce_us", json_of(times)}}}};
}

// Throughput of one in units of the other's, window by window; null where one is absent.
Json ratio_of(const EngineComparison& measured, const char* name, const char* other) {
  const auto find = [&](const char* wanted) {
    return std::ranges::find_if(measured.engines, [&](const EngineTimes& engine) {
      return engine.name == wanted && engine.absent.empty();
    });
  };
  const auto one = find(name);
  const auto base = find(other);
  if (one == measured.engines.end() || base == measured.engines.end()) return nullptr;
  const auto times = medians_of(*one);
  const auto base_times = medians_of(*base);
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(times.size(), base_times.size()); ++i)
    ratios.push_back(base_times[i] / times[i]);
  return json_of(range_of(ratios));
}

}  // namespace

EngineComparison compare_engines(std::vector<EngineTimes> engines, std::uint64_t bytes,
                                 std::size_t nodes, double seconds, std::ostream& progress) {
  const auto program = (program_folder() / "dpwa-bench-collective").string();
  const auto mpirun = find_program("mpirun");
  for (EngineTimes& engine : engines) {
    if (engine.name == "mpi" && engine.absent.empty() && mpirun.empty())
      engine.absent = "there is no mpirun";
  }
  EngineComparison result{bytes, nodes, std::move(engines), {}};
  NoiseWatch watch;
  for (int i = 1; i <= windows_by_engine; ++i) {
    progress << "   window " << i << "/" << windows_by_engine;
    for (EngineTimes& engine : result.engines) {
      if (!engine.absent.empty()) continue;
      const Json job = {{"engine", engine.name},
                        {"nodes", nodes},
                        {"store_port", net::free_ports(1).front()},
                        {"bytes", bytes},
                        {"seconds", seconds / windows_by_engine}};
      try {
        const RankTimes window = engine.name == "mpi" ? by_mpirun(mpirun, program, job, nodes)
                                                      : by_processes(program, job, nodes);
        progress << "  " << engine.name << " " << time_text(quantile(window.times_us, 0.5));
        watch.also_used(window.cpu_s);
        engine.setting = window.setting;
        engine.times_us.push_back(window.times_us);
      } catch (const std::exception& error) {
        engine.absent = error.what();
      }
    }
    progress << std::endl;
  }
  double spread = 0;
  for (const EngineTimes& engine : result.engines) {
    std::vector<double> medians;
    for (const auto& window : engine.times_us) medians.push_back(quantile(window, 0.5));
    if (engine.absent.empty()) spread = std::max(spread, spread_of(range_of(medians)));
  }
  result.noise = watch.judge(spread);
  return result;
}

Json engine_comparison_document(const EngineComparison& measured) {
  Json engines = Json::array();
  for (const EngineTimes& engine : measured.engines) engines.push_back(engine_of(measured, engine));
  return {{"kind", "engines"},
          {"bytes", measured.bytes},
          {"nodes", measured.nodes},
          {"engines", engines},
          {"ratio_mpi_to_gloo", ratio_of(measured, "mpi", "gloo")},
          {"noise", json_of(measured.noise)},
          {"settings", machine_settings()}};
}

void print_engine_comparison(const Json& document, std::ostream& out) {
  for (const Json& engine : document.at("engines")) {
    std::string name = engine.at("name");
    name.resize(std::max<std::size_t>(name.size(), 20), ' ');
    out << name;
    if (engine.contains("absent")) {
      out << "absent: " << engine.at("absent").get<std::string>() << '\n';
      continue;
    }
    const Json& range = engine.at("windows").at("allreduce_us");
    out << number_text(engine.at("gb_per_s"), 2) << " GB/s, "
        << time_text(range.at("median").get<double>()) << " an all-reduce ("
        << time_text(range.at("min").get<double>()) << " to "
        << time_text(range.at("max").get<double>()) << ")";
    const std::string setting = engine.at("setting");
    out << (setting.empty() ? "" : "; " + setting) << '\n';
  }
  const Json& ratio = document.at("ratio_mpi_to_gloo");
  if (!ratio.is_null())
    out << "mpi / gloo          " << number_text(ratio.at("median"), 2) << " ("
        << number_text(ratio.at("min"), 2) << " to " << number_text(ratio.at("max"), 2) << ")\n";
}

}  // namespace dpwa::bench
