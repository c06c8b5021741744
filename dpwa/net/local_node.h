#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "dpwa/base/time.h"
#include "dpwa/net/local_process.h"
#include "dpwa/net/members.h"
#include "dpwa/net/served_notes.h"
#include "dpwa/net/statements.h"
#include "dpwa/snapshot/manifest.h"
#include "dpwa/snapshot/snapshot_store.h"
#include "dpwa/wire/messages.h"
#include "interpolation/kernels/codec.h"

namespace dpwa {

// A node as both network threads see it: the process, and the snapshots that it serves.
struct LocalNode : LocalProcess {
  LocalNode(std::string cluster_name, std::string node_name, std::uint64_t node_incarnation,
            std::vector<std::string> node_peers, Manifest node_manifest, std::size_t chunk_bytes,
            const BufferAllocator& allocate, bool with_chunk_checksums = true,
            std::unique_ptr<Members> node_members = nullptr)
      : LocalProcess(std::move(cluster_name), std::move(node_name), node_incarnation,
                     std::move(node_peers), std::move(node_manifest), std::move(node_members)),
        chunk_checksums(with_chunk_checksums),
        store(manifest.total_bytes(), chunk_bytes, allocate) {}

  Codec codec = Codec::raw;    // asked of peers; set before the threads begin
  bool keeps_ledger = false;   // as its pull engine does; set before the threads begin
  const bool chunk_checksums;  // false: none towards peers that want none either
  SnapshotStore store;
  std::uint32_t capabilities() const override {
    return LocalProcess::capabilities() |
           (chunk_checksums ? 0 : wire::unchecked_chunks_capability) |
           (keeps_ledger ? wire::ledger_capability : 0);
  }
  Progress progress() const override { return store.progress(); }
  // Rx thread: `peer` has received a snapshot of this progress, as asked for by `pull`, or has said
  // that it has the final one. Not for callers that may borrow the name of a node of the file.
  void note_served(const std::string& peer, const Progress& progress, const wire::Pull& pull) {
    if (when_served) when_served();
    if (!pull.for_final_average) {
      const bool trains = state != wire::NodeState::joining;
      if (pull.full && trains && members->is_listed(peer))
        served.gave(peer, {now(), progress.lineage});
    } else if (progress.final) {
      // One that still trains, or only joins, will want the final snapshot again for its average.
      served.gave_final(peer);
    }
  }
  std::atomic<bool> stale{false};  // its trainer is gone: the last snapshot is all there will be
  // Another back end trains: the last snapshot is not of now, and is not given to be blended.
  std::atomic<bool> dormant{false};
  // Until when the latest snapshot is no older than a step of this node usually takes. After that
  // no peer that keeps the ledger blends it.
  std::atomic<TimePoint> fresh_until{TimePoint::max()};
  TimeSource now = std::chrono::steady_clock::now;  // of `served`; set before the threads begin
  Statements statements;
  ServedNotes served;
  // After each note, on the Rx thread; empty: nothing. Set before the threads begin.
  std::function<void()> when_served;
};

}  // namespace dpwa
