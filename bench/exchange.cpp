#include "bench/exchange.h"

namespace dpwa::bench {

Json Exchanger::answer(const Json& command) {
  const std::uint64_t count = command.value("count", std::uint64_t{1});
  const auto length = std::chrono::duration<double>(command.value("seconds", 0.0));
  Window window;
  std::int64_t took = 0;
  std::uint64_t done = 0;
  const auto begun = SteadyClock::now();
  do {
    pull_once(window);
    took = nanoseconds_since(begun);
  } while (++done < count || SteadyClock::now() - begun < length);
  return {{"pulls", window.pulls},
          {"bytes", window.bytes},
          {"ns", took},
          {"latency_ns", window.latency_ns},
          {"trainer_latency_ns", window.trainer_latency_ns},
          {"failed", window.failed}};
}

}  // namespace dpwa::bench
