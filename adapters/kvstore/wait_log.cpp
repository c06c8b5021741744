#include "adapters/kvstore/wait_log.h"

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

std::string WaitLog::reason() const {
  std::string reason = problems();
  if (!reason.empty()) return reason;
  std::vector<std::string> others = client_.workers();
  std::erase(others, self_);
  return "workers that take part: " + (others.empty() ? "no other" : config::joined(others));
}

void WaitLog::look(TimePoint began, const std::string& what, TimePoint now) {
  if (!lines_.due(began, now, between_words, between_words)) return;
  log(LogLevel::warn, "kvstore", "waiting for " + what + "; " + reason());
}

void WaitLog::look_at_start(TimePoint began, TimePoint until, TimePoint now) {
  using std::chrono::seconds;
  if (!lines_.due(began, now)) return;
  std::string text = "waiting for the servers to take this worker in, for " +
                     std::to_string((now - began) / seconds(1)) + " s so far";
  if (until != TimePoint::max()) {
    const auto most = std::chrono::ceil<seconds>(until - began).count();
    text += " and " + std::to_string(most) + " s at most";
  }
  log(LogLevel::info, "kvstore", text + "; " + reason());
}

void WaitLog::look_at_end(TimePoint began, TimePoint now) {
  if (!lines_.due(began, now, WaitLines::then_every)) return;
  log(LogLevel::info, "kvstore",
      "done, and waits for the workers that still train: " + config::joined(client_.workers()));
}

}  // namespace dpwa::kvstore
