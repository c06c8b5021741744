#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dpwa/base/settings.h"
#include "dpwa/base/time.h"
#include "dpwa/kvstore/barriers.h"
#include "dpwa/kvstore/beat_interval.h"
#include "dpwa/kvstore/epoch_engine.h"
#include "dpwa/kvstore/member_watch.h"
#include "dpwa/kvstore/messages.h"
#include "dpwa/kvstore/shard_engine.h"

namespace dpwa::kvstore {

struct ServerEngineOptions {
  ShardRules shard;
  WatchOptions watch;  // `replicas` is that of `shard`
  Duration beat = beat_interval(default_lost_after);
  Duration retry = std::chrono::milliseconds(500);  // of a proposal without a majority
  bool snapshots = false;
  Settings settings{};  // of the cluster file
};

// The decisions of one server of the store: members, epochs and slices. Messages in, messages out.
// Pure: time is an argument. One owner, one thread.
//
//   engine.receive(from, tag, message, now)   for each message
//   engine.tick(now)                          some times in each `beat`
//   engine.take()                             after either: what to send
//   engine.deposed()                          the others went on without this process, which has
//                                             been silent, or know a later one of its name
//                                             (outdated_by()): it begins again, empty and with a
//                                             new incarnation, and is filled by the others
class ServerEngine {
 public:
  // `servers`: all names, in the order of the cluster file. `self`: the name of one of them, and an
  // incarnation higher than any that it had before.
  ServerEngine(const ServerEngineOptions& options, const MemberId& self,
               const std::vector<std::string>& servers, TimePoint now);

  void receive(const MemberId& from, std::uint64_t tag, Message message, TimePoint now);
  void tick(TimePoint now);
  // Bytes of this member have come since the last call, perhaps of a message that is not whole yet.
  void sends(const MemberId& member, std::uint64_t bytes, TimePoint now) {
    watch_.sends(member, bytes, now);
  }
  // The process of this member has ended: a connection was refused or reset.
  void lost(const MemberId& member, TimePoint now) {
    watch_.lost(member, now);
    beaten_ = TimePoint::min();  // the others wait to learn that this server does not hear it
  }
  std::vector<Outgoing> take();
  bool deposed() const { return deposed_; }
  // The highest number in use before, where that is above the incarnation of this process: the next
  // one has to be above it (base/incarnation.h). None: no later process is known.
  std::optional<std::uint64_t> outdated_by() const { return outdated_by_; }
  // The other servers have other settings: one line; this server ends.
  const std::optional<std::string>& refusal() const { return refusal_; }
  // Lines for the log: who is not taken in because its settings are others, once for each process.
  std::vector<std::string> take_complaints() { return std::exchange(complaints_, {}); }
  // The answer to a worker that cannot be taken in now; none: it can.
  std::optional<Answer> refusal(const MemberId& worker, TimePoint now) const;
  bool has_left(const MemberId& worker) const { return watch_.has_left(worker); }

  // Begins a snapshot (ShardEngine) on all servers. Any server may call it. Returns the number of
  // the snapshot.
  std::uint32_t begin_snapshot() {
    shard_.announce_snapshot(shard_.snapshot() + 1);
    return shard_.snapshot();
  }
  std::vector<ShardEngine::Captured> take_captured() { return shard_.take_captured(); }
  // Tells the other servers that the part of this one is on its disk, or was given up.
  void snapshot_over(std::uint32_t number, bool stored);
  std::uint32_t stored_everywhere() const { return watch_.stored_everywhere(epoch(), beat()); }
  std::uint32_t over_everywhere() const { return watch_.over_everywhere(epoch(), beat()); }
  std::uint64_t updates_everywhere() const { return watch_.updates_everywhere(epoch(), beat()); }
  bool knows_updates() const { return watch_.knows_updates(epoch(), beat()); }

  // --- the start from a snapshot, before the first epoch
  void set_stock(std::vector<SnapshotId> held, bool had_complete);
  std::optional<MemberWatch::Start> start(TimePoint now) const {
    return watch_.start(epoch(), beat(), now);
  }
  // The slices of this server in that snapshot; called once. They are its values from the first
  // epoch on. If the first epoch begins with another snapshot, this incarnation ends (deposed()).
  void load(const SnapshotId& from, std::vector<ShardEngine::Captured> slices);
  bool loaded() const { return stock_.loaded.has_value(); }

  // The run whose workers are still there, and in which a former process of this server had values
  // that nobody else has; number 0: none. A new run begins with the newest snapshot of all servers.
  // Where there is none, or another server is still in the old run, the workers are told that it is
  // over.
  const Epoch& ended() const { return ended_; }

  const Epoch& epoch() const { return epochs_.installed(); }
  const MemberId& self() const { return epochs_.self(); }
  const ShardEngine& shard() const { return shard_; }
  // As MemberWatch::started_again(), while this server takes part in no epoch.
  std::vector<std::string> started_again(TimePoint now) const;
  // Members that are gone and without whose votes nobody can be taken in or left out. They, or
  // their next processes, have to answer (is_majority).
  std::vector<std::string> undecided(TimePoint now) const {
    return epochs_.undecided(now, options_.watch.silent_after);
  }
  // As EpochEngine::take_replaced().
  std::vector<std::string> take_replaced() { return epochs_.take_replaced(); }
  // Servers that are gone and that alone had their slices.
  std::vector<std::string> missing(TimePoint now) const { return watch_.missing(epoch(), now); }

 private:
  Beat beat() const;
  void reconsider(TimePoint now);
  void complain_of_deaf(TimePoint now);
  void take_up_epoch(TimePoint now);
  void take_up_loaded();
  bool agrees(const MemberId& from, const Beat& beat);
  std::optional<Answer> later_number(const MemberId& process, TimePoint now) const;
  void note_later_process(std::uint64_t incarnation, std::uint64_t known);
  bool has_listened(TimePoint now) const;
  std::vector<std::string> lost_servers(TimePoint now) const;
  bool may_vote(TimePoint now) const;
  bool believes(const MemberId& from, const Epoch& epoch) const;
  bool has_former_values(const Epoch& epoch) const;
  bool has_lost_values_of(const Epoch& epoch) const;
  void end_run(const MemberId& from, const Epoch& last, TimePoint now);
  void tell_lost(TimePoint now);
  void hear_of_snapshot(std::uint32_t number);
  void tell_snapshot(const MemberId& worker, const Beat& beat);
  void tell_passed();  // the workers whose barrier is passed

  const ServerEngineOptions options_;
  const TimePoint started_;
  EpochEngine epochs_;
  MemberWatch watch_;
  ShardEngine shard_;
  Stock stock_;
  std::vector<ShardEngine::Captured> loaded_;  // until the first epoch
  std::uint64_t loaded_clock_ = 0;
  std::uint32_t stored_ = 0;
  std::uint32_t over_ = 0;
  Barriers barriers_;
  bool member_ = false;  // it has been a member of an epoch
  bool deposed_ = false;
  std::optional<std::uint64_t> outdated_by_;
  std::optional<std::string> refusal_;
  std::map<std::string, std::uint64_t> refused_;           // incarnations, by name
  std::vector<std::pair<std::string, std::string>> deaf_;  // that were complained of
  std::vector<std::string> complaints_;
  Epoch ended_;
  TimePoint beaten_ = TimePoint::min();
  std::vector<Outgoing> outgoing_;
};

}  // namespace dpwa::kvstore
