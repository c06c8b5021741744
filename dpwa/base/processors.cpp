#include "dpwa/base/processors.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "dpwa/base/threads.h"

namespace dpwa {
namespace {

namespace fs = std::filesystem;

constexpr auto cgroup2 = "cgroup2";

// A mounted hierarchy of control groups that can limit processor time.
struct Hierarchy {
  bool unified = false;  // v2
  std::string top;       // the group that is mounted, "/" for the root of the hierarchy
  fs::path mounted;
};

bool has_word(const std::string& list, const std::string& word) {
  std::istringstream words(list);
  for (std::string each; std::getline(words, each, ',');) {
    if (each == word) return true;
  }
  return false;
}

// From mountinfo, proc(5): id, parent, device, top, place, options, more fields up to "-", type,
// source, options of the hierarchy.
std::vector<Hierarchy> hierarchies(const fs::path& root) {
  std::vector<Hierarchy> found;
  std::ifstream in(root / "proc/self/mountinfo");
  for (std::string line; std::getline(in, line);) {
    std::istringstream fields(line);
    std::string skipped, top, place, type, source, options;
    fields >> skipped >> skipped >> skipped >> top >> place;
    while (fields >> skipped && skipped != "-") continue;
    fields >> type >> source >> options;
    const bool unified = type == cgroup2;
    if (!unified && (type != "cgroup" || !has_word(options, "cpu"))) continue;
    found.push_back({unified, top, root / fs::path(place).relative_path()});
  }
  return found;
}

// The group of this process in such a hierarchy: "0::/a/b" (v2), "4:cpu,cpuacct:/a/b" (v1).
std::optional<std::string> own_group(const fs::path& root, bool unified) {
  std::ifstream in(root / "proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {
    const auto first = line.find(':');
    const auto second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (unified ? controllers.empty() : has_word(controllers, "cpu"))
      return line.substr(second + 1);
  }
  return std::nullopt;
}

// "150000 100000" or "max 100000" (v2); v1 has a file each, and -1 for no quota.
std::optional<double> quota_of(const fs::path& folder, bool unified) {
  double quota = 0, period = 0;
  if (unified) {
    std::ifstream file(folder / "cpu.max");
    if (!(file >> quota >> period)) return std::nullopt;
  } else {
    std::ifstream quota_file(folder / "cpu.cfs_quota_us");
    std::ifstream period_file(folder / "cpu.cfs_period_us");
    if (!(quota_file >> quota) || !(period_file >> period)) return std::nullopt;
  }
  return quota > 0 && period > 0 ? std::optional(quota / period) : std::nullopt;
}

}  // namespace

std::optional<double> cpu_quota(const fs::path& root) {
  std::optional<double> least;
  for (const Hierarchy& hierarchy : hierarchies(root)) {
    const auto group = own_group(root, hierarchy.unified);
    if (!group) continue;
    // A container may see its own group as the root, or the whole path and only its own part of it.
    fs::path below = fs::path(*group).lexically_relative(hierarchy.top);
    if (below.empty() || *below.begin() == "..") below = ".";
    for (below = below.lexically_normal();; below = below.parent_path()) {
      const auto quota = quota_of(hierarchy.mounted / below, hierarchy.unified);
      if (quota) least = std::min(*quota, least.value_or(*quota));
      if (below.empty() || below == ".") break;
    }
  }
  return least;
}

std::size_t threads_within(std::size_t processors, std::optional<double> quota) {
  if (quota && std::ceil(*quota) < static_cast<double>(processors))
    processors = static_cast<std::size_t>(std::ceil(*quota));
  return std::max<std::size_t>(1, processors);
}

std::size_t processor_count() {
  return threads_within(usable_processors().size(), cpu_quota());
}

}  // namespace dpwa
