#include "adapters/kvstore/wait_log.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "dpwa/config/text.h"
#include "dpwa/log/log.h"

namespace dpwa::kvstore {
namespace {

constexpr auto between_words = std::chrono::seconds(10);

}  // namespace

std::string WaitLog::problems() const {
  if (const auto refusal = client_.refusal()) return refusal->problem;
  return config::joined(client_.problems());
}

void WaitLog::look(TimePoint began, const std::string& what, TimePoint now) {
  if (now - std::max(began, told_) < between_words) return;
  told_ = now;
  std::string reason = problems();
  if (reason.empty()) {
    std::vector<std::string> others = client_.workers();
    std::erase(others, self_);
    reason = "workers that take part: " + (others.empty() ? "no other" : config::joined(others));
  }
  log(LogLevel::warn, "kvstore", "waiting for " + what + "; " + reason);
}

}  // namespace dpwa::kvstore
