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
#include "dpwa/kvstore/held_slice.h"
#include "dpwa/kvstore/memory_bound.h"
#include "dpwa/kvstore/messages.h"
#include "dpwa/kvstore/newcomers.h"
#include "dpwa/kvstore/shard_rules.h"
#include "dpwa/kvstore/slices.h"
#include "dpwa/kvstore/snapshot_cut.h"

namespace dpwa::kvstore {

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

  // --- snapshots (snapshot_cut.h)
  // A slice without pushes is captured once each worker has said that all its pushes from before
  // the snapshot are acknowledged.
  //
  // A slice whose primary is replaced meanwhile is not captured. The snapshot then stays
  // incomplete, and another one with a higher number has to be begun.
  void announce_snapshot(std::uint32_t number);
  // All pushes and new keys of this worker that are of earlier snapshots have been acknowledged,
  // and no more follow.
  void passed_snapshot(const MemberId& worker, std::uint32_t number);
  std::uint32_t snapshot() const { return cut_.number(); }
  bool all_past_snapshot() const { return cut_.all_past(epoch_); }
  bool is_snapshot_torn() const { return rules_.merged && cut_.is_torn(); }
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
  std::uint64_t bytes() const { return memory_.bytes(); }
  // The number of slices that workers find here and whose replica is not stored on another server.
  std::size_t without_replica() const;

 private:
  friend struct InvariantTest<ShardEngine>;
  using Held = HeldSlice;
  using Backup = HeldSlice::Backup;
  using Slices = std::map<SliceId, Held>;
  using Entry = Slices::value_type;

  // --- admission of requests (shard_engine.cpp)
  // `at_end`: workers at their end may send it.
  std::optional<AnswerKind> obstacle(const MemberId& from, std::uint64_t epoch,
                                     bool at_end = false) const;
  // After a change of the size of its values or of the optimizer's.
  void count_bytes(Held& held);
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
  // Answered once the last update before now is acknowledged.
  void answer_once_stored(Entry& entry, const Waiter& waiter);
  // A push that has been counted.
  void answer_duplicate(Entry& entry, const Waiter& waiter);
  void push_merged(Entry& entry, const MemberId& from, std::uint64_t tag, Push message,
                   TimePoint now);
  void push_single(Entry& entry, const MemberId& from, std::uint64_t tag, const Push& message,
                   TimePoint now);
  void close_rounds(Entry& entry, TimePoint now);
  // Whether it can be told with which step of a slice to begin.
  bool may_begin(const std::string& worker) const;
  void answer_newcomers();
  Entry& entry_of(const SliceId& slice);  // that is here
  void close(Entry& entry, std::uint64_t step, TimePoint now);
  void update(Entry& entry, Forward change, std::vector<Waiter> waiters, TimePoint now);
  void apply(Held& held, const Forward& change, Bytes* spare = nullptr);
  // --- snapshots (shard_snapshots.cpp)
  void capture_untouched();
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
  MemoryBound memory_;
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
  SnapshotCut cut_;
  Newcomers comers_;
  // Answers to workers that may not begin yet: by slice and worker.
  std::map<std::pair<SliceId, std::string>, Waiter> newcomers_;
  std::vector<Captured> captured_;
  std::vector<Outgoing> outgoing_;
};

}  // namespace dpwa::kvstore
