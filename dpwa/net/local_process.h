#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "dpwa/base/threads.h"
#include "dpwa/net/members.h"
#include "dpwa/net/shown_numbers.h"
#include "dpwa/rules/progress.h"
#include "dpwa/rules/step_clock.h"
#include "dpwa/snapshot/manifest.h"
#include "dpwa/wire/messages.h"

namespace dpwa {

class Security;

// Counters of the network side of a process since its start. Written by the network threads, read
// by anyone.
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

// Fields that a back end adds to the status document of its node, or that replace fields of it:
// JSON values by key. Any thread.
class StatusNotes {
 public:
  void set(const std::string& key, std::string json) {
    const MutexLock lock(mutex_);
    notes_.insert_or_assign(key, std::move(json));
  }
  void erase(const std::string& key) {
    const MutexLock lock(mutex_);
    notes_.erase(key);
  }
  std::map<std::string, std::string> all() const {
    const MutexLock lock(mutex_);
    return notes_;
  }

 private:
  mutable Mutex mutex_;
  std::map<std::string, std::string> notes_ DPWA_GUARDED_BY(mutex_);
};

// A process of the cluster as its connections introduce it: a node that serves snapshots
// (LocalNode), or one that serves none, as of backend collective or kvstore. Constant except for
// the atomics and for what synchronises itself.
struct LocalProcess {
  // `others`: the names of the processes that may call, or that this one calls, by PeerId. `model`:
  // what it exchanges; empty: no model.
  LocalProcess(std::string cluster_name, std::string own_name, std::uint64_t own_incarnation,
               std::vector<std::string> others, Manifest model = {},
               std::unique_ptr<Members> known_members = nullptr)
      : cluster(std::move(cluster_name)),
        name(std::move(own_name)),
        incarnation(own_incarnation),
        peers(std::move(others)),
        manifest(std::move(model)),
        members(known_members ? std::move(known_members)
                              : std::make_unique<Members>(name, incarnation, peers)) {}
  virtual ~LocalProcess() = default;

  const std::string cluster;
  const std::string name;
  const std::uint64_t incarnation;       // grows with every start of the process
  const std::vector<std::string> peers;  // names at the start, by PeerId
  const Manifest manifest;
  // How connections are secured; null: not at all. Set before the threads begin.
  std::shared_ptr<Security> security;
  bool of_file = true;  // the others' cluster file names it; set before the threads begin
  const std::unique_ptr<Members> members;  // of the cluster; never null
  // As HELLO and WELCOME state them.
  virtual std::uint32_t capabilities() const {
    return wire::all_codecs | (members->exchanges() ? wire::members_capability : 0);
  }
  // Of the model that it serves. Any thread.
  virtual Progress progress() const { return {}; }
  // As HELLO states it: zero where a connection moves no parameters, so that models may differ.
  virtual Fingerprint stated_fingerprint() const { return manifest.stated_fingerprint(); }
  std::atomic<wire::NodeState> state{wire::NodeState::joining};
  Traffic traffic;
  StepClock steps;  // of its trainer
  StatusNotes notes;
  ShownNumbers shown;  // by its trainer
};

}  // namespace dpwa
