#include "dpwa/kvworker/wait_log.h"

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

std::string WaitLog::others() const {
  std::vector<std::string> others = client_.workers();
  std::erase(others, self_);
  return config::joined(others);
}

std::string WaitLog::whom() const {
  const std::string names = others();
  return names.empty() || !problems().empty() ? "the servers" : names;
}

std::string WaitLog::reason() const {
  std::string reason = problems();
  if (!reason.empty()) return reason;
  const std::string names = others();
  return "workers that take part: " + (names.empty() ? "no other" : names);
}

void WaitLog::look(TimePoint began, const std::string& what, TimePoint now) {
  if (!lines_.due(began, now, between_words, between_words)) return;
  log(LogLevel::warn, "kvstore", "waiting for " + what + "; " + reason());
}

void WaitLog::look_at_start(TimePoint began, TimePoint until, TimePoint now) {
  if (!lines_.due(began, now)) return;
  log(LogLevel::info, "kvstore",
      "waiting for the servers to admit this worker, for " + words_for_wait(began, until, now) +
          "; " + reason());
}

void WaitLog::look_at_end(TimePoint began, TimePoint now) {
  if (!lines_.due(began, now, WaitLines::then_every)) return;
  log(LogLevel::info, "kvstore",
      "done, and waits for the workers that still train: " + config::joined(client_.workers()));
}

}  // namespace dpwa::kvstore
