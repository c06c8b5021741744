#include "bench/collective/engine_worker.h"

#include <ATen/Parallel.h>
#include <ATen/ops/full.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <stdexcept>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "bench/collective/bare_group.h"
#include "bench/measure/process_memory.h"

namespace dpwa::bench {
namespace {

using std::chrono::steady_clock;

int rank_of(const Json& job) {
  if (const auto rank = job.find("rank"); rank != job.end()) return *rank;
  const char* text = std::getenv("OMPI_COMM_WORLD_RANK");
  if (text == nullptr) throw std::runtime_error("the job names no rank, and mpirun gives none");
  return std::atoi(text);
}

// Seconds of one all-reduce.
double allreduce(const collective::ProcessGroup& group, const at::Tensor& tensor) {
  const auto from = steady_clock::now();
  std::vector<at::Tensor> list{tensor};
  group.c10d()->allreduce(list)->wait();
  return std::chrono::duration<double>(steady_clock::now() - from).count();
}

Json measure_allreduce(const Json& job, int rank) {
  at::set_num_threads(1);
  const auto [engine, group] =
      form_bare_group(job.at("engine"), rank, job.at("nodes"), job.at("store_port"));
  const auto vector =
      at::full({job.at("bytes").get<std::int64_t>() / 4}, 0.F);  // whose sums stay finite
  double once = 0;
  for (int i = 0; i < 3; ++i) once = allreduce(*group, vector);  // connected, pages there
  // The same number on all.
  const auto wanted = at::full({1}, job.at("seconds").get<double>() / std::max(once, 1e-6));
  const auto sum = wanted.to(at::kFloat);
  allreduce(*group, sum);
  const auto count =
      std::clamp<std::int64_t>(std::llround(sum.item<double>() / group->size()), 1, 1'000'000);
  std::vector<double> times;
  for (std::int64_t i = 0; i < count; ++i) times.push_back(1e6 * allreduce(*group, vector));
  group->leave(std::chrono::seconds(5));
  return {{"times_us", times}, {"cpu_s", processor_seconds()}, {"setting", engine->setting()}};
}

}  // namespace

int run_engine_worker(const Json& job) {
  JsonLines lines(STDIN_FILENO, STDOUT_FILENO);
  try {
    const int rank = rank_of(job);
    const Json measured = measure_allreduce(job, rank);
    if (rank == 0) lines.send(measured);
  } catch (const std::exception& error) {
    lines.send({{"error", error.what()}});
    return 1;
  }
  return 0;
}

}  // namespace dpwa::bench
