#include "dpwa/kvstore/snapshot_retention.h"

#include <iterator>

namespace dpwa::kvstore {

bool SnapshotRetention::gives_up(const SnapshotId& ready, const SnapshotId& written) const {
  if (ready.run == written.run) return ready.number + 1 < written.number;
  return ready < written && common && !common->contains(ready);
}

std::set<SnapshotId> SnapshotRetention::kept(const std::set<SnapshotId>& complete,
                                             const SnapshotId& id) const {
  std::set<SnapshotId> usable = {id};
  for (const SnapshotId& each : complete) {
    if (each.run == id.run || !common) usable.insert(each);
  }
  if (common) usable.insert(common->begin(), common->end());
  usable.erase(std::next(usable.find(id)), usable.end());
  while (usable.size() > keep) usable.erase(usable.begin());
  return usable;
}

}  // namespace dpwa::kvstore
