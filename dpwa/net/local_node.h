#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "dpwa/base/threads.h"
#include "dpwa/base/time.h"
#include "dpwa/net/members.h"
#include "dpwa/net/served_notes.h"
#include "dpwa/net/statements.h"
#include "dpwa/snapshot/manifest.h"
#include "dpwa/snapshot/snapshot_store.h"
#include "dpwa/wire/messages.h"
#include "interpolation/kernels/codec.h"

namespace dpwa {

class Security;

// Counters of a node's network side since its start. Written by the network threads, read by
// anyone.
struct Traffic {
  using Counter = std::atomic<std::uint64_t>;
  Counter connections_accepted{0};
  Counter connections_refused{0};  // over the limit, or a handshake that failed
  Counter protocol_errors{0};      // corrupt frames, bad lengths, wrong magic, in either direction
  // Handshakes in which one end did not accept the other's proof of identity: no TLS, another key,
  // or an invalid certificate; in either direction.
  Counter security_failures{0};
  Counter snapshots_served{0};
  Counter bytes_served{0};
  Counter bytes_received{0};
  Counter pulls_begun{0};
  // As the trainer counts them, one for each pull however many peers it asked: the same numbers as
  // in the step report. Written by the trainer's thread.
  Counter pulls_ok{0};
  Counter pulls_failed{0};
  // The part of the above that was handed over as memory of one host:
  Counter same_host_pulls{0};   // snapshots received
  Counter same_host_served{0};  // snapshots read by peers
  // Readers that kept a snapshot longer than allowed; its buffer was then taken back.
  Counter same_host_leases_expired{0};
  // Own reads thrown away because the peer had taken the buffer back meanwhile.
  Counter same_host_reads_discarded{0};
};

// Values that a back end adds to the status document of its node, or that replace values of it:
// JSON values by key. Any thread.
class StatusNotes {
 public:
  void set(const std::string& key, std::string json) {
    const MutexLock lock(mutex_);
    notes_.insert_or_assign(key, std::move(json));
  }
  std::map<std::string, std::string> all() const {
    const MutexLock lock(mutex_);
    return notes_;
  }

 private:
  mutable Mutex mutex_;
  std::map<std::string, std::string> notes_ DPWA_GUARDED_BY(mutex_);
};

// The node as both network threads see it. Constant except for the atomics and the store, which
// synchronise themselves.
struct LocalNode {
  LocalNode(std::string cluster_name, std::string node_name, std::uint64_t node_incarnation,
            std::vector<std::string> node_peers, Manifest node_manifest, std::size_t chunk_bytes,
            const BufferAllocator& allocate, bool with_chunk_checksums = true,
            std::unique_ptr<Members> node_members = nullptr)
      : cluster(std::move(cluster_name)),
        name(std::move(node_name)),
        incarnation(node_incarnation),
        peers(std::move(node_peers)),
        manifest(std::move(node_manifest)),
        chunk_checksums(with_chunk_checksums),
        store(manifest.total_bytes(), chunk_bytes, allocate),
        members(node_members ? std::move(node_members)
                             : std::make_unique<Members>(name, incarnation, peers)) {}

  const std::string cluster;
  const std::string name;
  const std::uint64_t incarnation;       // grows with every start of the node
  const std::vector<std::string> peers;  // names at the start, by PeerId
  const Manifest manifest;
  Codec codec = Codec::raw;  // asked of peers; set before the threads begin
  // How connections are secured; null: not at all. Set before the threads begin.
  std::shared_ptr<Security> security;
  bool keeps_ledger = false;   // as its pull engine does; set before the threads begin
  bool of_file = true;         // the others' cluster file names it; set before the threads begin
  const bool chunk_checksums;  // false: none towards peers that want none either
  SnapshotStore store;
  const std::unique_ptr<Members> members;  // of the cluster; never null
  // The capabilities of this node, as HELLO and WELCOME state them.
  std::uint32_t capabilities() const {
    return wire::all_codecs | (chunk_checksums ? 0 : wire::unchecked_chunks_capability) |
           (members->exchanges() ? wire::members_capability : 0) |
           (keeps_ledger ? wire::ledger_capability : 0);
  }
  // Rx thread: `peer` has received a snapshot of this progress, as asked for by `pull`. Not for
  // callers that borrow the name of a node of the file from elsewhere.
  void note_served(const std::string& peer, const Progress& progress, const wire::Pull& pull) {
    if (when_served) when_served();
    if (!pull.for_final_average) {
      const bool trains = state != wire::NodeState::joining;
      if (pull.full && trains && members->is_seed(peer))
        served.gave(peer, {now(), progress.lineage});
    } else if (progress.final) {
      // One that still trains, or only joins, will want the final snapshot again for its average.
      served.gave_final(peer);
    }
  }
  std::atomic<wire::NodeState> state{wire::NodeState::joining};
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
  Traffic traffic;
  StatusNotes notes;
};

}  // namespace dpwa
