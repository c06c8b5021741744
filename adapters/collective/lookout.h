#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "adapters/collective/next_group.h"
#include "adapters/collective/patience.h"
#include "dpwa/base/time.h"
#include "dpwa/config/config.h"
#include "dpwa/net/local_node.h"

namespace dpwa::collective {

// What a node sees of the others of its file, by asking all for their status at once. One thread.
class Lookout {
 public:
  // All outlive it.
  Lookout(const Config& config, LocalNode& local, const NoticeBoard& board, Patience& patience);

  // By place in the file. Blocks for as long as an answer may take. One that was given up is asked
  // once a second alone, so that it does not slow down the others.
  std::vector<Sight> look();

 private:
  struct Memory {
    Sight sight;
    bool refused_before = false;
    std::optional<TimePoint> silent_since;
    TimePoint asked{};
  };
  bool to_ask(std::size_t place, TimePoint now) const;
  void see(Memory& memory, const std::string& json, const std::string& error, TimePoint now);

  const Config& config_;
  LocalNode& local_;
  const NoticeBoard& board_;
  Patience& patience_;
  std::vector<Memory> nodes_;
};

}  // namespace dpwa::collective
