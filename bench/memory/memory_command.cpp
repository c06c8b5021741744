#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include "bench/commands.h"
#include "bench/measure/machine.h"
#include "bench/measure/statistics.h"
#include "bench/memory/plain_blend.h"
#include "bench/quantity.h"
#include "bench/worker/measurement.h"
#include "dpwa/base/checksum.h"
#include "dpwa/cli/text_table.h"
#include "dpwa/snapshot/aligned_buffer.h"
#include "interpolation/kernels/dtype.h"
#include "interpolation/kernels/kernels.h"

namespace dpwa::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;
constexpr double factor = 0.25;

// The memory of one thread: vectors of equal length out of cache, and a staging buffer in it.
struct Vectors {
  Vectors(std::size_t bytes, DType dtype, std::uint64_t seed);

  static constexpr std::size_t staging_bytes = 512 << 10;

  AlignedBuffer parameters;
  AlignedBuffer peer;
  AlignedBuffer snapshots[3];  // the last one doubles as the landing
  AlignedBuffer staging;
  std::size_t next_snapshot = 0;
};

// One pass over the vectors.
struct Pass {
  std::string name;
  std::string meaning;  // for people
  DType dtype;
  std::function<void(Vectors&)> run;
};

void copy(AlignedBuffer& to, const AlignedBuffer& from) {
  std::memcpy(to.bytes().data(), from.bytes().data(), from.bytes().size());
}

AlignedBuffer& next_snapshot(Vectors& vectors) {
  return vectors.snapshots[vectors.next_snapshot++ % 3];
}

// Calls `use` with the offset and size of piece after piece, as chunks arrive in a staging buffer.
template <class Use>
void by_staging(const Vectors& vectors, const Use& use) {
  const std::size_t bytes = vectors.parameters.bytes().size();
  for (std::size_t at = 0; at < bytes; at += Vectors::staging_bytes)
    use(at, std::min(Vectors::staging_bytes, bytes - at));
}

void add_dtype_passes(DType dtype, std::vector<Pass>& passes) {
  passes.push_back({"delta", "blend in place, difference out of cache", dtype, [dtype](Vectors& v) {
                      kernels::delta(dtype, v.parameters.bytes(), v.peer.bytes(), factor);
                    }});
  passes.push_back({"lerp", "blend in place, peer out of cache", dtype, [dtype](Vectors& v) {
                      kernels::lerp(dtype, v.parameters.bytes(), v.peer.bytes(), factor);
                    }});
  passes.push_back({"lerp_hot", "blend in place, peer in cache", dtype, [dtype](Vectors& v) {
                      by_staging(v, [&](std::size_t at, std::size_t count) {
                        kernels::lerp(dtype, v.parameters.bytes().subspan(at, count),
                                      v.staging.bytes().first(count), factor);
                      });
                    }});
  passes.push_back({"land_difference", "land, peer out of cache", dtype, [dtype](Vectors& v) {
                      kernels::land_difference(dtype, v.snapshots[2].bytes(), v.peer.bytes(),
                                               v.parameters.bytes());
                    }});
  passes.push_back(
      {"land_difference_hot", "land past the cache, peer in cache", dtype, [dtype](Vectors& v) {
         by_staging(v, [&](std::size_t at, std::size_t count) {
           kernels::land_difference(
               dtype, v.snapshots[2].bytes().subspan(at, count), v.staging.bytes().first(count),
               v.parameters.bytes().subspan(at, count), kernels::Stores::streaming);
         });
       }});
}

Vectors::Vectors(std::size_t bytes, DType dtype, std::uint64_t seed)
    : parameters(bytes),
      peer(bytes),
      snapshots{AlignedBuffer(bytes), AlignedBuffer(bytes), AlignedBuffer(bytes)},
      staging(staging_bytes) {
  fill_with_values(parameters.bytes(), seed, dtype);
  fill_with_values(peer.bytes(), seed + 1, dtype);
  fill_with_values(staging.bytes(), seed + 2, dtype);
}

// All passes of docs/data/benchmark.csv, "Memory limits".
std::vector<Pass> memory_passes() {
  std::vector<Pass> passes;
  passes.push_back(
      {"memcpy", "copy", DType::float32, [](Vectors& v) { copy(v.snapshots[0], v.parameters); }});
  passes.push_back({"publish_copy", "copy into the next of three snapshot buffers", DType::float32,
                    [](Vectors& v) { copy(next_snapshot(v), v.parameters); }});
  passes.push_back(
      {"new_buffer", "blend into another buffer, plain loop", DType::float32, [](Vectors& v) {
         plain_blend(v.snapshots[0].bytes(), v.parameters.bytes(), v.peer.bytes(),
                     static_cast<float>(factor));
       }});
  passes.push_back(
      {"plain_difference", "land without statistics, plain loop", DType::float32, [](Vectors& v) {
         plain_difference(v.snapshots[2].bytes(), v.peer.bytes(), v.parameters.bytes());
       }});
  passes.push_back({"checksum", "CRC32C", DType::float32, [](Vectors& v) {
                      static std::atomic<std::uint32_t> sink;
                      sink = crc32c(v.parameters.bytes());
                    }});
  for (const DType dtype : {DType::float32, DType::float64, DType::float16, DType::bfloat16}) {
    add_dtype_passes(dtype, passes);
  }
  return passes;
}

// GB/s of one vector's bytes, all threads together, each on vectors of its own, for about
// `seconds`.
double rate_of(const Pass& pass, std::vector<Vectors>& threads, double seconds) {
  std::vector<double> rates(threads.size());
  std::atomic<std::size_t> waiting{threads.size()};
  const auto work = [&](std::size_t index) {
    Vectors& vectors = threads[index];
    pass.run(vectors);  // not counted: the threads start together
    for (--waiting; waiting > 0;) std::this_thread::yield();
    const auto begun = SteadyClock::now();
    std::chrono::duration<double> elapsed{};
    double bytes = 0;
    do {
      pass.run(vectors);
      bytes += static_cast<double>(vectors.parameters.bytes().size());
      elapsed = SteadyClock::now() - begun;
    } while (elapsed.count() < seconds);
    rates[index] = bytes / 1e9 / elapsed.count();
  };
  std::vector<std::thread> others;
  for (std::size_t i = 1; i < threads.size(); ++i) others.emplace_back(work, i);
  work(0);
  for (std::thread& thread : others) thread.join();
  double sum = 0;
  for (const double rate : rates) sum += rate;
  return sum;
}

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
      parent.add_subcommand("memory", "Throughput of this machine's memory: copy, blend, land");
  add_size_option(*command, "--bytes", options->bytes, "Size of a vector, all threads together");
  command->add_option("--threads", options->threads, "Threads to measure besides one")
      ->check(CLI::Range(1U, 256U))
      ->default_str("one for each core");
  command->add_flag("--json", options->json, "Print one JSON document instead of a table");
  command->callback([options, &context] { run_memory(*options, context); });
}

}  // namespace dpwa::bench
