#pragma once

#include <functional>
#include <string>
#include <vector>

#include "dpwa/base/event_kind.h"
#include "dpwa/kvstore/epoch.h"
#include "dpwa/kvstore/worker_changes.h"

namespace dpwa::kvserver {

// A line of the log about the members.
struct EpochLine {
  EventKind event = EventKind::view;
  std::string text;
};

// The changes from one epoch to the next, one line each: which workers and servers take part and
// which no longer do. Pure; one owner, one thread.
class EpochWords {
 public:
  // `has_left`: whether a worker that no longer takes part has said so itself.
  std::vector<EpochLine> look(const kvstore::Epoch& epoch,
                              const std::function<bool(const kvstore::MemberId&)>& has_left);

 private:
  std::uint64_t number_ = 0;
  std::vector<kvstore::ServerEntry> servers_;
  kvstore::WorkerChanges workers_;
};

}  // namespace dpwa::kvserver
