#include "bench/pull/publisher.h"

#include <cstring>
#include <utility>
#include <vector>

#include "bench/values.h"

namespace dpwa::bench {

Publisher::Publisher(LocalNode& local, std::uint64_t seed) : local_(local) {
  std::vector<SnapshotStore::Writer> writers;
  while (auto writer = local_.store.begin()) writers.push_back(std::move(*writer));
  fill_with_values(writers.front().bytes(), seed);
  for (std::size_t i = 1; i < writers.size(); ++i) {
    const auto source = writers.front().bytes();
    std::memcpy(writers[i].bytes().data(), source.data(), source.size());
  }
  local_.store.publish(std::move(writers.front()), next_progress());
}

bool Publisher::publish() {
  const std::lock_guard lock(mutex_);
  auto writer = local_.store.begin();
  if (!writer) return false;
  local_.store.publish(std::move(*writer), next_progress());
  return true;
}

Progress Publisher::next_progress() {
  Progress progress;
  progress.version = ++version_;
  progress.lineage = 1;
  progress.clock = static_cast<double>(version_);
  progress.loss = 1;
  return progress;
}

}  // namespace dpwa::bench
