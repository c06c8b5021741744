#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "dpwa/base/time.h"
#include "dpwa/net/io_thread.h"
#include "dpwa/rules/member.h"

namespace dpwa {

struct LocalProcess;

// Notices two processes under one name. A caller whose incarnation differs from the one known under
// its name is a restart or a second process. The process at the known address of the name decides:
// if none answers, or the caller itself does, it is a restart and admitted at once; if another
// process answers, the caller is refused. Rx thread only; outlives its coroutines.
class NameGuard {
 public:
  explicit NameGuard(LocalProcess& local) : local_(local) {}

  struct Verdict {
    bool admitted = true;
    std::string refusal{};  // when not admitted: why; empty = not now, let it try again
  };
  // `network`: that the caller comes from (network.h).
  boost::asio::awaitable<Verdict> examine(std::string name, std::uint64_t incarnation,
                                          std::string network);

 private:
  static constexpr Duration patience = std::chrono::milliseconds(500);  // with the known address
  static constexpr Duration answer_holds = std::chrono::milliseconds(300);  // then asked again
  static constexpr std::size_t most_at_once = 8;
  static constexpr std::ptrdiff_t most_of_a_network =
      4;  // so that no one caller keeps others waiting

  struct Answer {
    TimePoint at;
    std::uint64_t incarnation = 0;  // 0: no answer
  };
  static Verdict judge(const MemberClaim& known, std::uint64_t caller, std::uint64_t answering);

  net::IoThread thread_;
  LocalProcess& local_;
  std::unordered_map<std::string, Answer> answers_;  // of the last `answer_holds`
  std::vector<std::string> under_way_;               // whose networks asked
};

}  // namespace dpwa
