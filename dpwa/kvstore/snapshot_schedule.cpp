#include "dpwa/kvstore/snapshot_schedule.h"

#include <algorithm>

namespace dpwa::kvstore {

void SnapshotSchedule::look(const Epoch& epoch, const View& view, TimePoint now) {
  if (servers_.empty()) {  // the first epoch
    servers_ = epoch.servers;
    number_ = view.number;
    began_ = now;
  }
  if (view.number > number_) begins(view.number, epoch, view, now);
}

void SnapshotSchedule::begins(std::uint32_t number, const Epoch& epoch, const View& view,
                              TimePoint now) {
  number_ = number;
  updates_ = view.updates;
  servers_ = epoch.servers;
  began_ = now;
}

bool SnapshotSchedule::all_up(const Epoch& epoch) {
  return std::ranges::all_of(
      epoch.servers, [](const ServerEntry& server) { return server.state == ServerState::up; });
}

bool SnapshotSchedule::due(const Epoch& epoch, const std::string& self, const View& view,
                           TimePoint now) const {
  // A slice that only a replica has would be missing at the next start.
  if (!all_up(epoch) || epoch.servers.empty() || epoch.servers.front().id.name != self)
    return false;
  // Once all workers have left, their last pushes are on no disk.
  if (epoch.workers.empty() ? !view.current : now - began_ < every_) return false;
  if (!news(view)) return false;
  const bool under_way = view.number > view.over;
  return !under_way || servers_ != epoch.servers || now - began_ >= patience * every_;
}

bool SnapshotSchedule::last_is_due(const Epoch& epoch, const View& view) const {
  if (servers_.empty() || !epoch.workers.empty()) return false;
  const bool under_way = view.number > view.over;
  const bool unnamed =
      view.number > epoch.from.number && view.stored >= view.number && view.named < view.number;
  return !view.current || news(view) || under_way || unnamed;
}

}  // namespace dpwa::kvstore
