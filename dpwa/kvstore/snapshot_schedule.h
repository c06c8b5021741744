#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dpwa/base/time.h"
#include "dpwa/kvstore/epoch.h"

namespace dpwa::kvstore {

// Decides when a snapshot begins. The first server of the file decides, while all servers are up.
// Pure; one owner, one thread.
class SnapshotSchedule {
 public:
  // `every`: the time from the beginning of one snapshot to that of the next.
  SnapshotSchedule(Duration every, TimePoint now) : every_(every), began_(now) {}

  struct View {
    std::uint32_t number = 0;  // the last snapshot that has begun
    std::uint32_t over = 0;    // the last snapshot whose part is stored or given up at every server
    std::uint64_t updates = 0;  // of all servers since they were started
    std::uint32_t stored = 0;   // the last snapshot of which all servers have stored their part
    std::uint32_t named = 0;    // the last snapshot whose file here has its final name
    bool current = true;        // `updates` has those of all servers up to this epoch
  };
  static bool all_up(const Epoch& epoch);  // the servers
  // Called before due(), in each epoch.
  void look(const Epoch& epoch, const View& view, TimePoint now);
  bool due(const Epoch& epoch, const std::string& self, const View& view, TimePoint now) const;
  // This server has begun snapshot `number` since `view` was taken: updates beyond it are news.
  void begins(std::uint32_t number, const Epoch& epoch, const View& view, TimePoint now);
  // The last one was given up: what it would have had is on no disk.
  void gave_up() { updates_ = 0; }
  // All workers have left, and the snapshot of their last steps is not complete on this disk yet.
  bool last_is_due(const Epoch& epoch, const View& view) const;

 private:
  // Whether there are updates since the last snapshot began.
  bool news(const View& view) const { return view.updates != updates_; }

  // A snapshot that has not ended after this many periods is given up.
  static constexpr int patience = 10;

  const Duration every_;
  TimePoint began_;
  std::uint32_t number_ = 0;
  // When it began. Before that 0: updates of which this server does not know the snapshot are news.
  std::uint64_t updates_ = 0;
  std::vector<ServerEntry> servers_;  // when it began
};

}  // namespace dpwa::kvstore
