#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "dpwa/base/invariant.h"
#include "dpwa/base/time.h"
#include "dpwa/kvstore/messages.h"
#include "dpwa/kvstore/slice_state.h"
#include "dpwa/kvstore/slices.h"
#include "dpwa/kvstore/store_type.h"

namespace dpwa::kvstore {

inline constexpr std::uint64_t unbounded_staleness = std::numeric_limits<std::uint64_t>::max();

// How pushes become updates.
//   dist_sync           merged, staleness 0
//   dist_async          not merged, staleness unbounded
//   dist_ssp, s = 0     as dist_sync: nobody may see an update of a step before all have pushed it,
//                       so the pushes of a step are one update
//   dist_ssp, s > 0     not merged, staleness s
struct ShardRules {
  // The pushes of all workers for one step are one update; otherwise each push is one.
  bool merged = true;
  // A pull of a worker that has pushed c steps waits for all pushes of steps below c - staleness
  // ("More Effective Distributed ML via a Stale Synchronous Parallel Parameter Server", Ho et al.,
  // 2013). So its worker goes on only while no other is more than `staleness` steps behind.
  std::uint64_t staleness = 0;
  bool replicas = false;
  // How long a replica may be silent before it is asked again, and a quarter of that time at most.
  Duration resend = std::chrono::milliseconds(500);
  std::size_t syncs_at_once = 16;  // slices that are compared or copied together
  // The most bytes of one server: values, optimizer states, one sum and bytes_beside_values for
  // each slice, replicas included. A key or an optimizer that would exceed it is refused; a replica
  // never is. 0: no bound.
  std::uint64_t memory_bytes = 0;
};

// The memory of one slice beside its values: its key, the clocks of its workers and what waits for
// it. A bound on what a process takes for keys of one element and four workers.
inline constexpr std::uint64_t bytes_beside_values = 4096;

// The rules of one of the types dist_*. `staleness`: of dist_ssp; the other types imply theirs.
ShardRules rules_of(KvstoreType type, std::uint64_t staleness = 0, bool replicas = false);

struct ShardCounts {
  std::uint64_t updates = 0;
  std::uint64_t dropped = 0;
  std::uint64_t duplicates = 0;
  std::uint64_t not_finite = 0;
};

// The most pushes with open rounds, and the most waiting pulls, of one worker for one slice. More
// are refused. WorkerEngine has one push and its window of pulls under way.
inline constexpr std::size_t most_open_rounds = 16;
inline constexpr std::size_t most_waiting_pulls = 64;
// The most keys that one worker has initialised and the first worker has not: they have no value.
inline constexpr std::size_t most_waiting_inits = 1024;

// The slices of one server: which pushes count, when a round closes, what a pull waits for, and
// what the replica has to store first. A push is acknowledged, and a pull sees it as done, after
// the replica has it. Pure: time is an argument, messages go out through take(). One owner, one
// thread.
//
// A server that is no longer a member, or returns with a new incarnation, begins with a new engine.
class ShardEngine {
 public:
  ShardEngine(const ShardRules& rules, std::string name);

  // Requests of an earlier epoch that have no answer yet are dropped: the workers send them again.
  void install(const Epoch& epoch, TimePoint now);
  const Epoch& epoch() const { return epoch_; }

  // Messages of workers; the answer has the same `tag`. The memory that a push lends must not
  // change until the push is counted, dropped or refused, or a pull beyond its step is answered.
  void receive(const MemberId& from, std::uint64_t tag, Init message, TimePoint now);
  void receive(const MemberId& from, std::uint64_t tag, Push message, TimePoint now);
  void receive(const MemberId& from, std::uint64_t tag, const Pull& message, TimePoint now);
  void receive(const MemberId& from, std::uint64_t tag, const StateMessage& message, TimePoint now);
  // Messages of the other server that has the slice.
  void receive(const MemberId& from, Forward message, TimePoint now);
  void receive(const MemberId& from, const Sync& message, TimePoint now);
  void receive(const MemberId& from, Copy message, TimePoint now);
  void receive(const MemberId& from, const Stored& message, TimePoint now);
  void receive(const MemberId& from, const Want& message, TimePoint now);
  void tick(TimePoint now);

  std::vector<Outgoing> take() { return std::exchange(outgoing_, {}); }

  // For the beat: the highest step that a worker pushes next, and the servers that have been
  // filled.
  std::uint64_t clock() const { return clock_; }
  std::vector<std::uint16_t> filled() const;

  // --- snapshots
  // A snapshot is a cut through the steps: it has all pushes of each worker up to some step, in all
  // slices of all servers, and none after it. No server or worker waits for it. A worker learns the
  // number of the snapshot from answers. With each push it states the last number that it knew of
  // when the step began (Lai and Yang, "On distributed snapshots", 1987). The pushes before that
  // step belong to the snapshot, even if a server receives them after the push of a faster worker.
  // With merged pushes a round belongs to the snapshot unless one of its workers knew of the
  // snapshot.
  //
  // A slice without pushes is captured once each worker has said that all its pushes from before
  // the snapshot are acknowledged.
  //
  // A slice whose primary is replaced meanwhile is not captured. The snapshot then stays
  // incomplete, and another one with a higher number has to be begun.
  void announce_snapshot(std::uint32_t number);
  // All pushes of this worker that state an earlier snapshot have been acknowledged, and no more
  // follow.
  void passed_snapshot(const MemberId& worker, std::uint32_t number);
  std::uint32_t snapshot() const { return snapshot_; }
  // All pushes of this worker whose steps began in earlier epochs have been sent.
  void passed_epoch(const MemberId& worker, std::uint64_t number);
  struct Captured {
    std::uint32_t snapshot = 0;
    SliceId slice;
    ValueSpec spec;
    SliceState state;
  };
  std::vector<Captured> take_captured() { return std::exchange(captured_, {}); }
  // Before the first epoch: a slice of this server, as it was captured. Throws std::out_of_range
  // for a slice that its key does not have.
  void restore(const SliceId& slice, const ValueSpec& spec, std::uint32_t servers,
               SliceState state);

  const ShardCounts& counts() const { return counts_; }
  struct View {  // for tests
    std::uint64_t version = 0;
    std::uint64_t round = 0;
    std::span<const std::byte> values;
  };
  std::optional<View> view(const SliceId& slice) const;
  std::size_t size() const { return slices_.size(); }
  std::size_t primaries() const;  // the number of those that workers find here
  // The bytes that memory_bytes bounds.
  std::uint64_t bytes() const { return bytes_; }
  // The number of slices that workers find here and whose replica is not stored on another server.
  std::size_t without_replica() const;

 private:
  friend struct InvariantTest<ShardEngine>;
  struct Waiter {
    std::string worker;
    std::uint64_t tag = 0;
    AnswerKind kind = AnswerKind::counted;
    std::uint64_t step = 0;
    bool wants_value = false;
  };
  struct Lent {
    MemberId worker;
    Contribution values;
    Loan loan;
  };
  // The pushes for one step whose round is open.
  struct Round {
    std::set<MemberId> counted;
    std::set<MemberId> absent;
    Bytes sum;           // sum of the contributions that are not lent; empty: none
    bool finite = true;  // whether the parts of `sum` are finite
    std::vector<Lent> lent;
    double weight = 0;  // the weights of all contributions in `sum`
    Merge merge = Merge::sum;
    bool averages = true;  // all pushes, also those that do not count, are for a plain mean
    std::string leader;    // the first worker by name; its optimizer is used
    Bytes optimizer;
    std::uint32_t snapshot = 0;  // the last snapshot that one of its workers knew of
    // The first epoch in which a step began to which one of its pushes belongs.
    std::uint64_t begun_in = std::numeric_limits<std::uint64_t>::max();
    // The workers whose pushes count so far. Those that want no value have been answered, and are
    // answered once more if their push does not count after all.
    std::vector<Waiter> waiters;

    bool has(const MemberId& worker) const {
      return counted.contains(worker) || absent.contains(worker);
    }
  };
  // An update that the replica has not stored yet.
  struct Pending {
    std::uint64_t version = 0;
    std::uint64_t round_before = 0;
    std::vector<Waiter> waiters{};
  };
  struct PullWaiter {
    MemberId worker;
    std::uint64_t tag = 0;
    std::uint64_t clock = 0;
    std::uint64_t known_version = 0;
  };
  enum class Backup : std::uint8_t { unsynced, syncing, synced };
  struct Capture {
    std::uint32_t number = 0;
    SliceState state;
  };
  struct Held : SliceState {
    ValueSpec spec;
    std::uint32_t home = 0;
    std::size_t elements = 0;
    std::uint64_t bytes = 0;                      // as it counts in bytes_
    std::map<std::string, Advance> acknowledged;  // `clocks` as the replica has them
    // --- as primary
    bool primary = false;  // it was the primary in the last epoch
    std::map<std::uint64_t, Round> rounds;
    std::vector<Pending> pending;
    std::vector<PullWaiter> pulls;
    // The step with which each worker began that counts each key apart and has pushed nothing.
    std::map<std::string, Advance> begins;
    std::optional<Capture> capture;               // a snapshot to which pushes may still belong
    std::map<MemberId, std::uint32_t> snapshots;  // that each worker stated with its last push
    std::pair<MemberId, std::uint64_t> placed;    // the last state: by whom, and its tag
    Backup backup = Backup::unsynced;
    TimePoint asked{};  // when the backup was asked last
    // --- as backup: it was compared with the primary in this epoch
    bool compared = false;
  };
  using Slices = std::map<SliceId, Held>;
  using Entry = Slices::value_type;

  // --- admission of requests (shard_engine.cpp)
  // `at_end`: workers at their end may send it.
  std::optional<AnswerKind> obstacle(const MemberId& from, std::uint64_t epoch,
                                     bool at_end = false) const;
  void count_bytes(Held& held);  // after a change of the size of its values or of the optimizer's
  void take_off_bytes(const Held& held);
  // Why the server cannot hold so many more bytes; none: it can.
  std::optional<std::string> shortage(std::uint64_t more_bytes) const;
  std::size_t waiting_inits(const std::string& worker) const;
  bool is_primary(std::uint32_t home) const;
  std::optional<std::size_t> backup_of(std::uint32_t home) const;
  const std::string& name_of_backup(const Held& held) const;  // of one that has a backup
  void refuse(const std::string& to, std::uint64_t tag, const SliceId& slice, AnswerKind kind,
              std::uint64_t step, std::string problem = {});
  // The answer says which key of which worker has the problem.
  void explain_refusal(const std::string& to, std::uint64_t tag, const SliceId& slice,
                       AnswerKind kind, std::uint64_t step, const std::string& problem);
  // The slice of a request about values that are here; null: the request was refused.
  Entry* slice_for(const MemberId& from, std::uint64_t tag, std::uint64_t epoch, const SliceId& id,
                   std::uint64_t step, bool at_end = false);
  void answer(const Entry& entry, const Waiter& waiter);
  void send(const std::string& to, std::uint64_t tag, Message message);

  // --- rounds and updates (shard_rounds.cpp)
  // The backup has to store the version of now before these are answered.
  static void add_pending(Held& held, std::uint64_t round_before, std::vector<Waiter> waiters);
  // Answered once the last update before now is acknowledged.
  void answer_once_stored(Entry& entry, const Waiter& waiter);
  // A push that has been counted.
  void answer_duplicate(Entry& entry, const Waiter& waiter);
  void push_merged(Entry& entry, const MemberId& from, std::uint64_t tag, Push message,
                   TimePoint now);
  void push_single(Entry& entry, const MemberId& from, std::uint64_t tag, const Push& message,
                   TimePoint now);
  static bool add_owned(const Held& held, Round& round, Push& message);
  static bool add(const Held& held, Round& round, const MemberId& from, Push message);
  void close_rounds(Entry& entry, TimePoint now);
  // Drops the parts of workers that took their memory back, and parts that are not finite.
  void leave_out(Round& round, const std::function<bool(const Lent&)>& which);
  void leave_out_all(Round& round);
  // --- workers that come (shard_newcomers.cpp)
  // Whether the round waits for this worker, once all others have pushed.
  static bool takes_part(const Round& round, const WorkerEntry& worker);
  // The first step of this slice from which on all rounds do.
  static std::uint64_t first_round(const Held& held, const WorkerEntry& worker);
  // Without merged pushes: the step that a worker has not made yet, for those that wait for it.
  // None for one that has come, and not yet to this slice: nobody waits.
  std::optional<std::uint64_t> awaited_step(const Held& held, const WorkerEntry& worker) const;
  void note_begin(Held& held, const MemberId& worker, std::uint64_t step) const;
  // Whether it can be told with which step of a slice to begin.
  bool may_begin(const std::string& worker) const;
  void answer_newcomers();
  void note_newcomers(TimePoint now);  // of the epoch
  void end_patience(TimePoint now);
  Entry& entry_of(const SliceId& slice);  // that is here
  Bytes gradient_of(const Held& held, Round& round, double& scale);
  void close(Entry& entry, std::uint64_t step, TimePoint now);
  static std::uint64_t next_of(const std::map<std::string, Advance>& clocks,
                               const MemberId& worker);
  std::uint64_t progress(const Held& held, const WorkerEntry& worker) const;
  // The step of this slice with which the worker goes on, or begins.
  std::uint64_t step_for(const Held& held, const std::string& worker) const;
  // The lowest step that a live worker still has to push, counting acknowledged pushes only.
  std::uint64_t acknowledged_clock(const Held& held, std::uint64_t round) const;
  void update(Entry& entry, Forward change, std::vector<Waiter> waiters, TimePoint now);
  void apply(Held& held, const Forward& change, Bytes* spare = nullptr);
  // --- snapshots (shard_snapshots.cpp)
  bool is_past(const Held& held, const MemberId& worker, std::uint32_t number) const;
  static void begin_capture(Held& held, std::uint32_t number);
  void capture_untouched();
  void capture(Entry& entry, const Forward& change);
  void end_capture(Entry& entry);
  void serve_pulls(Entry& entry);

  // --- the replica (shard_replicas.cpp)
  bool must_store(const Held& held) const;
  void acknowledge(Entry& entry, std::uint64_t version);
  void mark_syncing(Entry& entry, TimePoint now);  // its backup is asked, or sent a copy
  void begin_sync(Entry& entry, TimePoint now);
  void continue_sync(TimePoint now);
  void send_copy(Entry& entry, TimePoint now);
  bool from_primary(const MemberId& from, std::uint64_t epoch, std::uint32_t home) const;
  Entry* with_backup(const MemberId& from, std::uint64_t epoch, const SliceId& slice);

  const ShardRules rules_;
  const std::string name_;
  Epoch epoch_;
  std::uint32_t self_ = 0;  // index among the servers
  Slices slices_;
  std::uint64_t bytes_ = 0;
  struct WaitingInit {
    Waiter waiter;
    ValueSpec spec;  // of its worker
  };
  std::map<SliceId, std::vector<WaitingInit>> inits_;  // of slices that have not been created
  std::set<SliceId> to_sync_;  // whose backup has not been asked in this epoch
  std::size_t syncing_ = 0;
  TimePoint looked_{};       // at the backups that have not answered
  bool all_synced_ = false;  // in this epoch the backups have had everything at some time
  std::uint64_t clock_ = 0;
  ShardCounts counts_;
  std::uint32_t snapshot_ = 0;
  std::map<MemberId, std::uint32_t> passed_;  // as passed_snapshot() has it
  std::map<MemberId, std::uint64_t> past_epoch_;
  std::map<MemberId, TimePoint> came_;  // those that count each key apart; max(): waited for long
  // Answers to workers that may not begin yet: by slice and worker.
  std::map<std::pair<SliceId, std::string>, Waiter> newcomers_;
  std::vector<Captured> captured_;
  std::vector<Outgoing> outgoing_;
};

}  // namespace dpwa::kvstore
