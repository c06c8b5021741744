// One rank of a group, as a process that a test may kill: all-reduces until that fails, leaves, and
// forms the next group without the ranks that the test has killed.
//
// usage: dpwa_collective_rank FOLDER RANK SIZE LOST...
//
// The ranks of a group meet in a file of FOLDER. LOST: the ranks that the test will
// kill. Prints lines "WORD MILLISECONDS" of the monotonic clock.
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/ops/full.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <vector>

#include "adapters/collective/engine/operations.h"
#include "test/adapters/collective/tested_engine.h"

namespace {

using namespace dpwa::collective;
using namespace std::chrono_literals;

double now_ms() {
  using Milliseconds = std::chrono::duration<double, std::milli>;
  return Milliseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void tell(const char* word, const std::string& detail = {}) {
  std::printf("%s %.3f %s\n", word, now_ms(), detail.c_str());
  std::fflush(stdout);
}

// The ranks of a group meet in a file of this folder.
std::unique_ptr<ProcessGroup> form(const std::filesystem::path& folder,
                                   const GroupOptions& options) {
  const auto file = folder / ("store." + std::to_string(options.epoch));
  const auto store = c10::make_intrusive<c10d::FileStore>(file.string(), options.size);
  return ProcessGroup::form(make_engine(dpwa::test::tested_engine()), store, options);
}

// All-reduces 1 MB; throws std::logic_error for a wrong sum.
void reduce(const ProcessGroup& group, bool check) {
  ReduceOptions options;
  options.reduction = Reduction::sum;
  options.check = check;
  const auto sum =
      Operations(group).allreduce("w", at::full({250'000}, group.rank() + 1.0), options);
  const double expected = group.size() * (group.size() + 1) / 2.0;
  if (!sum.eq(expected).all().item<bool>()) throw std::logic_error("wrong sum");
}

int run(const std::filesystem::path& folder, GroupOptions options, const std::vector<int>& lost) {
  auto group = form(folder, options);
  tell("formed");
  try {
    for (;;) reduce(*group, false);
  } catch (const CollectiveError& error) {
    tell("failed", error.what());
    const auto known = group->lost_rank();
    if (known && std::find(lost.begin(), lost.end(), *known) == lost.end()) {
      throw std::logic_error("rank " + std::to_string(*known) + " is alive");
    }
  }
  group.reset();
  const auto before =
      std::count_if(lost.begin(), lost.end(), [&](int other) { return other < options.rank; });
  options.rank -= static_cast<int>(before);
  options.size -= static_cast<int>(lost.size());
  ++options.epoch;
  group = form(folder, options);
  tell("again");
  for (int k = 0; k < 20; ++k) reduce(*group, true);
  group->leave(10s);
  tell("done");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fputs("usage: dpwa_collective_rank FOLDER RANK SIZE LOST...\n", stderr);
    return 2;
  }
  at::set_num_threads(1);
  GroupOptions options = dpwa::test::tested_options();
  options.rank = std::stoi(argv[2]);
  options.size = std::stoi(argv[3]);
  options.timeout = 3600s;  // an error that comes sooner comes from the death of a rank
  std::vector<int> lost;
  for (int k = 4; k < argc; ++k) lost.push_back(std::stoi(argv[k]));
  try {
    return run(argv[1], options, lost);
  } catch (const std::exception& error) {
    tell("error", error.what());
    return 1;
  }
}
