#include "adapters/collective/patience.h"

#include <algorithm>
#include <chrono>
#include <vector>

namespace dpwa::collective {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t remembered = 64;
constexpr std::size_t enough = 8;

Duration median(std::vector<Duration> times) {
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::ranges::nth_element(times, middle);
  return *middle;
}

}  // namespace

void Patience::add(Window& window, Duration time) {
  window.push_back(time);
  if (window.size() > remembered) window.pop_front();
}

Duration Patience::usual(const Window& window) {
  const Duration middle = median({window.begin(), window.end()});
  std::vector<Duration> distances;
  for (const Duration time : window)
    distances.push_back(time > middle ? time - middle : middle - time);
  return middle + 8 * median(std::move(distances));
}

void Patience::waited(Duration time) {
  const std::lock_guard lock(mutex_);
  add(waits_, time);
}

void Patience::answered(Duration time) {
  const std::lock_guard lock(mutex_);
  add(answers_, time);
}

Duration Patience::before_looking() const {
  const std::lock_guard lock(mutex_);
  if (waits_.size() < enough) return 1s;
  return std::clamp<Duration>(usual(waits_), 100ms, 2s);
}

Duration Patience::before_lost() const {
  if (lost_after_ > Duration::zero()) return lost_after_;
  const std::lock_guard lock(mutex_);
  if (answers_.empty()) return 2s;
  return std::clamp<Duration>(10 * usual(answers_), 2s, 30s);
}

Duration Patience::of_a_look() const {
  return std::clamp<Duration>(before_lost() / 3, 100ms, 1s);
}

}  // namespace dpwa::collective
