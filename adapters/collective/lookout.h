#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "adapters/collective/next_group.h"
#include "adapters/collective/patience.h"
#include "dpwa/base/time.h"
#include "dpwa/config/config.h"
#include "dpwa/net/local_process.h"
#include "dpwa/net/status_query.h"

namespace dpwa::collective {

// A node's view of the other nodes of its file: asks all for their status at once. One thread.
class Lookout {
 public:
  // All outlive it.
  Lookout(const Config& config, LocalProcess& local, const NoticeBoard& board, Patience& patience);

  // By position in the file. Blocks for the longest time of an answer. A node that was given up is
  // asked only once a second, so that it does not slow down the others.
  std::vector<Sight> look();

 private:
  struct Memory {
    Sight sight;
    bool refused_before = false;
    std::optional<TimePoint> silent_since;
    TimePoint asked{};
  };
  bool to_ask(std::size_t place, TimePoint now) const;
  void see(Memory& memory, const StatusAnswer& answer, TimePoint now);

  const Config& config_;
  LocalProcess& local_;
  const NoticeBoard& board_;
  Patience& patience_;
  std::vector<Memory> nodes_;
};

}  // namespace dpwa::collective
