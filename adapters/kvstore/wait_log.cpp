#include "adapters/kvstore/wait_log.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "dpwa/config/text.h"
#include "dpwa/log/log.h"

namespace dpwa::kvstore {
namespace {

constexpr auto between_words = std::chrono::seconds(10);
constexpr auto between_words_at_end = std::chrono::seconds(30);

}  // namespace

std::string WaitLog::problems() const {
  if (const auto refusal = client_.refusal()) return refusal->problem;
  return config::joined(client_.problems());
}

bool WaitLog::is_time(TimePoint began, Duration between, TimePoint now) {
  if (now - std::max(began, told_) < between) return false;
  told_ = now;
  return true;
}

void WaitLog::look(TimePoint began, const std::string& what, TimePoint now) {
  if (!is_time(began, between_words, now)) return;
  std::string reason = problems();
  if (reason.empty()) {
    std::vector<std::string> others = client_.workers();
    std::erase(others, self_);
    reason = "workers that take part: " + (others.empty() ? "no other" : config::joined(others));
  }
  log(LogLevel::warn, "kvstore", "waiting for " + what + "; " + reason);
}

void WaitLog::look_at_end(TimePoint began, TimePoint now) {
  if (!is_time(began, between_words_at_end, now)) return;
  log(LogLevel::info, "kvstore",
      "done, and waits for the workers that still train: " + config::joined(client_.workers()));
}

}  // namespace dpwa::kvstore
