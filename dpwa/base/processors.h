#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>

namespace dpwa {

// How many threads the calling thread's process can run at once: the processors that it may run on,
// or fewer where a CPU quota allows fewer (rounded up). At least 1. Every default number of threads
// comes from here.
std::size_t processor_count();

// The CPU quota of the control groups of this process, in processors: the least of `cpu.max` (v2)
// and `cpu.cfs_quota_us` (v1) from its group up to the mount. None: no quota, or it cannot be read.
// `root`: the folder that stands for /, for tests.
std::optional<double> cpu_quota(const std::filesystem::path& root = "/");

// The number of threads for so many processors and this quota.
std::size_t threads_within(std::size_t processors, std::optional<double> quota);

}  // namespace dpwa
