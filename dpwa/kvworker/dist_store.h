#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dpwa/config/config.h"
#include "dpwa/kvclient/store_client.h"
#include "dpwa/kvstore/compression.h"
#include "dpwa/kvstore/optimizer.h"
#include "dpwa/kvstore/saved_states.h"
#include "dpwa/kvstore/shard_engine.h"
#include "dpwa/kvworker/call.h"
#include "dpwa/kvworker/key_specs.h"
#include "dpwa/kvworker/push_memory.h"
#include "dpwa/kvworker/wait_log.h"
#include "dpwa/kvworker/worker_model.h"
#include "dpwa/log/log.h"

namespace dpwa::kvstore {

// A value for a key, each key once in a call.
struct First {
  Key key;
  ValueSpec spec;
  std::span<const std::byte> values;
};
struct Pushed {
  Key key;
  ValueSpec spec;
  std::function<void(std::span<std::byte> to)> write;
};
struct Wanted {
  Key key;
  ValueSpec spec;
  // False: a slice is missing. The value is asked for again then.
  std::function<bool(const Slices& slices)> fill;
};

// A push of one key, under way until the servers have acknowledged it.
struct PushUnderWay {
  Key key;
  std::uint64_t step = 0;
  PushMemory::Taken memory;  // what is sent
  bool wants_value = false;
  kvclient::Ticket ticket = 0;
  bool confirmed = false;  // the end of its round was asked for
  std::optional<kvclient::Outcome> outcome;
};

// The operations of KVStore (adapters/kvstore/kvstore.h) for a worker of the types dist_*: the
// values lie on the servers. A call that throws KVStoreError has changed nothing. One thread at a
// time. A push writes its value to memory of its own, and returns; each push of a key is the next
// step of this worker for that key. A pull waits for the pushes that the type asks for, those of
// this worker among them.
//
// When the others have gone on without this worker because it was silent or hung, it takes part
// again with the next call. Its pushes in the meantime do not count, and its steps continue from
// those of the others.
class DistStore {
 public:
  // Throws KVStoreError when the servers and kvstore.min_workers workers are not there within
  // kvstore.start_wait_ms, and ConfigError for a file that does not fit.
  // `broken_off`: as break_off() sets it, to end the wait for the start.
  explicit DistStore(const Config& config, std::shared_ptr<std::atomic<bool>> broken_off =
                                               std::make_shared<std::atomic<bool>>(false));
  ~DistStore();

  // Tells the servers that this worker leaves, once. No call but the destructor comes after it.
  void leave();
  // Ends the wait of a call, which throws KVStoreError, as does every later one. Any thread.
  void break_off() { *broken_off_ = true; }

  std::string_view type() const;
  // The rank of this worker and the number of workers that take part now, in the order of their
  // names.
  int rank() const;
  int num_workers() const;
  int num_dead_node(std::chrono::milliseconds silent_for) const;
  std::uint64_t dropped_pushes();
  void barrier();
  void reload_security();

  const KeySpecs& specs() const { return specs_; }
  void init(const std::vector<First>& values);
  std::unique_ptr<Call> push(const std::vector<Pushed>& values, int priority);
  std::unique_ptr<Call> pull(const std::vector<Wanted>& wanted, int priority);
  // Does neither when one of them does not fit.
  std::unique_ptr<Call> pushpull(const std::vector<Pushed>& values,
                                 const std::vector<Wanted>& wanted, int priority);

  void set_optimizer(const OptimizerOptions& options);
  void set_compression(const CompressionOptions& options);

  // Throws KVStoreError without an optimizer.
  SavedStates states();
  // Sets the optimizer of the states when there is none. Throws KVStoreError for another kind of
  // optimizer and for unknown keys.
  void load(const SavedStates& states);

 private:
  friend class DistPush;
  friend class DistPull;
  using Pushes = std::vector<std::shared_ptr<PushUnderWay>>;
  struct Value {
    std::uint64_t next_step = 0;  // of the next push
    std::deque<std::shared_ptr<PushUnderWay>> pushes;
  };

  // --- waiting (dist_calls.cpp)
  // Until the call is over; takes part again meanwhile, if need be. `what` is for the log.
  kvclient::Outcome wait(kvclient::Ticket ticket, const std::string& what);
  void take_part_again();
  void check_takes_part();
  // False: not by then. Throws KVStoreError when servers refuse this worker for good.
  bool join_until(TimePoint until);
  // Drops the pushes that are over. Throws KVStoreError for the first that was refused.
  void reap(Value& value);
  bool look_at(PushUnderWay& push);
  void end(PushUnderWay& push, kvclient::Outcome outcome);
  void confirm(PushUnderWay& push);  // asks when its round ends
  void finish(const std::shared_ptr<PushUnderWay>& push);
  void finish_pushes();
  void forget_abandoned();
  TimePoint next_look() const;  // throws after break_off()
  void computes(bool computes);
  // Fills in the value with all pushes of this worker. Returns its version.
  std::uint64_t pull_one(const Wanted& wanted, int priority,
                         std::optional<kvclient::Ticket> ticket);

  void check_push(const std::vector<Pushed>& values) const;
  void check_pull(const std::vector<Wanted>& wanted) const;
  Pushes begin_push(const std::vector<Pushed>& values, int priority, bool want_values);
  PushMemory::Taken memory_for(const Pushed& value);
  // Called with the keys of each call. The next step of the program begins with the call that
  // pushes one of them again.
  void note_step(const std::vector<Pushed>& values);

  const Config config_;
  const ShardRules rules_;
  const std::shared_ptr<Security> security_;  // null: none
  KeySpecs specs_;
  std::map<Key, Value> values_;
  std::optional<OptimizerOptions> optimizer_;
  Bytes encoded_optimizer_;
  CompressionOptions compression_;
  std::uint64_t clock_ = 0;         // the highest step of a key
  std::set<Key> pushed_in_step_{};  // of the program, as note_step() has it
  std::uint64_t dropped_ = 0;
  std::uint64_t barriers_ = 0;
  bool left_out_ = false;  // and not taken part again since
  // Each call that was under way hears of it, and each of its pushes: one line.
  LogLimiter left_out_log_{std::chrono::seconds(1)};
  mutable int rank_ = 0;  // the last known one
  std::vector<kvclient::Ticket> abandoned_;
  const std::shared_ptr<std::atomic<bool>> broken_off_;
  bool left_ = false;
  std::unique_ptr<kvclient::StoreClient> client_;  // reads lent memory
  // After client_ was made:
  std::optional<WaitLog> wait_log_;
  std::optional<PushMemory> push_memory_;
};

// A push of one or more keys that is under way.
class DistPush : public Call {
 public:
  DistPush(DistStore& store, std::vector<std::shared_ptr<PushUnderWay>> pushes)
      : store_(store), pushes_(std::move(pushes)) {}
  bool done() override;
  Versions wait() override;

 private:
  DistStore& store_;
  std::vector<std::shared_ptr<PushUnderWay>> pushes_;
};

// A pull that is under way: each value comes with the answer to a push, or is asked for. It is
// filled in by wait().
class DistPull : public Call {
 public:
  DistPull(DistStore& store, const std::vector<Wanted>& wanted, int priority,
           const std::vector<std::shared_ptr<PushUnderWay>>& pushes);
  ~DistPull() override;
  DistPull(const DistPull&) = delete;
  DistPull& operator=(const DistPull&) = delete;
  bool done() override;
  Versions wait() override;

 private:
  struct Part {
    Wanted wanted;
    std::shared_ptr<PushUnderWay> push;      // whose answer has the value; null: a pull
    std::optional<kvclient::Ticket> ticket;  // of the pull; none: its outcome was taken
    std::optional<kvclient::Outcome> outcome;
    std::optional<std::uint64_t> version;  // it is filled in
  };
  void wait_for_push(Part& part);

  DistStore& store_;
  int priority_;
  std::vector<Part> parts_;
};

}  // namespace dpwa::kvstore
