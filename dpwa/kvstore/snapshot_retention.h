#pragma once

#include <cstdint>
#include <optional>
#include <set>

#include "dpwa/kvstore/epoch.h"

namespace dpwa::kvstore {

// Which of a server's parts of snapshots stay on its disk. Pure.
struct SnapshotRetention {
  std::uint32_t keep = 1;  // the number of snapshots that all servers have
  // Those of earlier runs that all servers had at the start; none: not known.
  std::optional<std::set<SnapshotId>> common{};

  // Whether a part that is only ready goes once `written` is ready too. Such parts would fill this
  // disk while another server cannot write its own. The last two of a run stay, and the `common`
  // ones.
  bool gives_up(const SnapshotId& ready, const SnapshotId& written) const;
  // The snapshots that stay once all servers have `id`, of those up to `id`: the newest `keep` that
  // all servers have. `complete`: those here that all servers had when they were written. Without
  // `common` all of them count.
  std::set<SnapshotId> kept(const std::set<SnapshotId>& complete, const SnapshotId& id) const;
};

}  // namespace dpwa::kvstore
