#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "adapters/collective/adaptive_timeout.h"
#include "adapters/collective/next_group.h"
#include "dpwa/base/random.h"
#include "dpwa/base/time.h"
#include "dpwa/config/config.h"
#include "dpwa/net/local_process.h"
#include "dpwa/net/status_query.h"

namespace dpwa::collective {

// A node's view of the other nodes of its file: asks them for their status, several at once. A node
// that says nothing new is asked ever more rarely, down to once a second: else nodes that wait for
// a missing one would cost each other hundreds of connections a second. One thread.
class StatusPoller {
 public:
  // Asks the nodes at these places of the file, all at once.
  using Ask = std::function<std::vector<StatusAnswer>(const std::vector<std::size_t>& places)>;

  // All outlive it.
  StatusPoller(const Config& config, LocalProcess& local, const NoticeBoard& board,
               AdaptiveTimeout& patience);
  StatusPoller(const Config& config, LocalProcess& local, const NoticeBoard& board,
               AdaptiveTimeout& patience, Ask ask, TimeSource now);

  // By position in the file: asks the nodes whose turn it is; of the others the last view. Blocks
  // for the longest time of an answer. After news from one node it is the turn of all.
  std::vector<MemberView> look();
  // It is the turn of all nodes, and soon again. One that was given up is asked only once a second
  // nevertheless, so that it does not slow down the others.
  void expect_news();
  TimePoint next_turn() const;  // the first one

 private:
  struct Memory {
    MemberView view;
    bool refused_before = false;
    std::optional<TimePoint> silent_since;
    TimePoint asked{};
    unsigned without_news = 0;  // answers in a row
    TimePoint turn{};           // unless it was given up
  };
  TimePoint turn_of(std::size_t place) const;
  void see(Memory& memory, const StatusAnswer& answer, TimePoint now);

  const Config& config_;
  LocalProcess& local_;
  const NoticeBoard& board_;
  AdaptiveTimeout& patience_;
  const Ask ask_;
  const TimeSource now_;
  std::vector<Memory> nodes_;
  Random random_;
};

}  // namespace dpwa::collective
