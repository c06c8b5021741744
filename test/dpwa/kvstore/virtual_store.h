#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "dpwa/base/random.h"
#include "dpwa/kvstore/server_engine.h"
#include "dpwa/kvstore/snapshot_plan.h"
#include "dpwa/kvstore/worker_engine.h"
#include "dpwa/world/world.h"
#include "test/dpwa/kvstore/doubles.h"

namespace dpwa::kvstore::testing {

struct StoreOptions {
  KvstoreType type = KvstoreType::dist_sync;
  std::uint64_t staleness = 0;
  bool replicas = false;
  std::size_t servers = 1;
  std::size_t workers = 3;
  std::uint64_t keys = 4;
  std::uint64_t unused_keys = 0;  // are initialised, and never pushed or pulled
  std::uint64_t seed = 1;
  // sgd with the learning rate 1, for gradients that are negative, adds up what is pushed.
  OptimizerKind optimizer = OptimizerKind::sgd;
  double loss = 0;                          // of a message
  double doubled = 0;                       // a message arrives twice
  double overtaking = 0;                    // a message is late by up to 100 ms
  double latency_ms = 0;                    // of every message, beside 0.2 to 2 ms
  double not_finite = 0;                    // a push
  std::uint64_t steps = ~std::uint64_t{0};  // after which a worker pushes no more
  bool finishes = false;         // after those steps, as an adapter does: with the final values
  bool numbers_by_time = false;  // processes have incarnations as real ones do
  bool keeps_snapshots = false;  // servers write some to their disks, and begin with the last one
};

// Servers (s0, s1, ...) and workers (w0, w1, ...) in a World: each drives the engine of the real
// process. Every step of a worker pushes all keys and pulls them again. Each life of a worker has a
// row of its own in each value: with sgd the row has a bit for each step that was counted and,
// first, how many they are. So whether each counted exactly once can be read from the values.
class VirtualStore {
 public:
  static constexpr std::size_t max_lives = 16;
  static constexpr std::size_t bits = 50;                         // of a double that are used
  static constexpr std::size_t row_words = 34;                    // one for the number of steps
  static constexpr std::size_t elements = max_lives * row_words;  // of a value

  // `from`: a snapshot that the servers have on their disks at first, by key.
  explicit VirtualStore(StoreOptions options,
                        std::map<std::uint64_t, ShardEngine::Captured> from = {});

  VirtualStore(const VirtualStore&) = delete;
  VirtualStore& operator=(const VirtualStore&) = delete;

  void run(Duration time) { world_.run(time); }
  // Workers begin no more steps, and the network loses nothing.
  void quiesce(Duration time);
  // Machines in the order servers, workers.
  world::World& world() { return world_; }

  // --- faults
  void kill_server(std::size_t server) { world_.kill(server); }
  // Empty, with an incarnation above that of the life before, or with this one.
  void start_server(std::size_t server, std::uint64_t incarnation = 0);
  void kill_worker(std::size_t worker) { world_.kill(options_.servers + worker); }
  void start_worker(std::size_t worker, std::uint64_t incarnation = 0);
  void freeze(const std::string& name) { world_.freeze(machine_of(name)); }
  void thaw(const std::string& name) { world_.wake(machine_of(name)); }
  // The trainer stands still while the process answers; and goes on.
  void hang(std::size_t worker, bool hangs);
  void slow_down(std::size_t worker, double factor);
  // Only members of one side hear one another; empty: all do.
  void split(const std::set<std::string>& side);
  // Nothing that `from` sends reaches `to`, or all does again.
  void cut(const std::string& from, const std::string& to, bool is_cut = true) {
    world_.cut(machine_of(from), machine_of(to), is_cut);
  }

  std::uint32_t begin_snapshot() { return servers_.front().engine->begin_snapshot(); }
  // By snapshot and key.
  using Snapshots = std::map<std::uint32_t, std::map<std::uint64_t, ShardEngine::Captured>>;
  const Snapshots& snapshots() const { return snapshots_; }
  // Whether the disks of all servers have one, of which all know.
  bool has_snapshot() const;
  // What is wrong with a snapshot of all keys; empty: nothing.
  std::string problem_of(std::uint32_t snapshot) const;

  // Called before each message of a process leaves, and after it. True: nothing more leaves.
  using Watch = std::function<bool(world::Environment& environment, const std::string& name,
                                   const Message& message, bool sent)>;
  void watch(Watch watch) { watch_ = std::move(watch); }

  // --- what happened
  std::size_t lives() const { return lives_; }  // of workers so far
  bool server_runs(std::size_t server) const { return servers_[server].engine != nullptr; }
  const ServerEngine& server(std::size_t server) const { return *servers_[server].engine; }
  const WorkerEngine& worker(std::size_t worker) const { return *workers_[worker].engine; }
  TimePoint time_of_server(std::size_t server) const { return servers_[server].environment->now(); }
  std::uint64_t clock(std::size_t worker) const { return workers_[worker].clock; }
  // The times at which the worker began a step, in ms.
  const std::vector<double>& begun_at(std::size_t worker) const { return workers_[worker].begun; }
  // Whether it has taken the final values.
  bool has_finished(std::size_t worker) const { return workers_[worker].finished; }
  std::size_t times_left_out(std::size_t worker) const { return workers_[worker].left_out; }
  // Whether this process has been told that the run is over, or that it is not admitted and why.
  bool told_why(std::size_t worker) const { return workers_[worker].told; }
  // By how many steps a worker that began one was ahead of the last.
  std::uint64_t largest_lead() const { return largest_lead_; }
  const std::vector<std::string>& failures() const { return failures_; }
  // Of a key, at its primary; empty: nobody serves it.
  std::vector<double> values(std::uint64_t key) const;
  // The primary and the backup of each key hold the same bits.
  bool replicas_agree() const;
  // Each key has a primary, in the last epoch, which is of this run.
  bool serves_all(std::uint64_t run) const;
  // Whether a push counts twice, or a step that was not pushed: what must not be after a return to
  // a snapshot either. Empty: no.
  std::string double_count() const;
  // What is wrong with the values, given what was answered; empty: nothing.
  std::string problem() const;
  double now_ms() const;

 private:
  struct Outcome {
    bool finite = true;
    bool counted = false;
    bool refused = false;  // late, or not finite
  };
  class Life;
  struct Process {
    std::uint64_t incarnation = 0;
    std::uint64_t next = 0;  // incarnation of the next process; 0: one more
    world::Environment* environment = nullptr;
    bool ends = false;  // at the next event
  };
  // What it keeps of snapshots.
  struct Disk {
    std::map<SnapshotId, std::vector<ShardEngine::Captured>> parts;
    std::set<SnapshotId> complete;  // that all servers have
  };
  struct Server : Process {
    std::unique_ptr<ServerEngine> engine;
    std::unique_ptr<SnapshotPlan> plan;  // null: it keeps no snapshots
    Disk disk;
  };
  struct Worker : Process {
    std::unique_ptr<WorkerEngine> engine;
    std::size_t row = 0;  // of this life
    // Of its pulls: for the final values, those that there are.
    std::uint64_t pull_clock() const { return finishing ? 0 : clock; }
    std::uint64_t clock = 0;
    bool joined = false;
    bool hangs = false;
    bool finishing = false;
    bool finished = false;
    bool told = false;
    bool computing = false;
    double slowness = 1;
    std::set<std::uint64_t> missing;  // keys whose pull is awaited
    std::size_t created = 0;
    std::vector<double> begun;
    std::size_t left_out = 0;
  };
  std::uint64_t next_incarnation(const Process& former) const;
  bool is_server(const std::string& name) const { return name.front() == 's'; }
  std::size_t index_of(const std::string& name) const { return std::stoul(name.substr(1)); }
  std::size_t machine_of(const std::string& name) const {
    return index_of(name) + (is_server(name) ? 0 : options_.servers);
  }
  Process& process(const std::string& name);
  TimePoint now(const std::string& name) { return process(name).environment->now(); }
  std::uint64_t life_of(const std::string& worker, std::uint64_t incarnation) const;  // from 1
  bool runs(const std::string& name) const;
  void begin_server(std::size_t server, world::Environment& environment);
  void begin_worker(std::size_t worker, world::Environment& environment);
  void tick(const std::string& name);
  Disk first_disk(std::size_t server) const;
  void list_snapshots(std::size_t server);
  void keep_snapshots(std::size_t server);
  void pump(const std::string& name);
  void transmit(const MemberId& from, Outgoing message);
  void check_epoch(const Epoch& epoch);
  void deliver(const MemberId& from, const Outgoing& message, std::uint64_t to_incarnation);
  void handle_events(std::size_t worker);
  void fail(std::string problem);
  void ask_for_values(std::size_t worker);
  void begin_step(std::size_t worker);
  void push_step(std::size_t worker);
  void check_pull(std::size_t worker, const WorkerEngine::Pulled& pulled);
  static std::uint64_t sure_from(const WorkerEntry& worker);
  void check_final(std::size_t worker, const WorkerEngine::Pulled& pulled);
  std::uint64_t counted_steps(const std::vector<double>& values, std::size_t row,
                              std::uint64_t step) const;

  const StoreOptions options_;
  const std::map<std::uint64_t, ShardEngine::Captured> from_;
  Random random_;
  std::vector<std::string> server_names_;
  std::vector<Server> servers_;
  std::vector<Worker> workers_;
  std::size_t lives_ = 0;
  std::map<std::pair<std::string, std::uint64_t>, std::size_t> rows_;
  // By row, key and step.
  std::map<std::tuple<std::size_t, std::uint64_t, std::uint64_t>, Outcome> outcomes_;
  std::vector<std::shared_ptr<Bytes>> gradients_;  // lent: kept for good
  Watch watch_;
  std::map<std::uint64_t, Epoch> epochs_;  // by number
  bool quiet_ = false;
  std::uint64_t largest_lead_ = 0;
  Snapshots snapshots_;
  std::vector<std::string> failures_;
  world::World world_;  // the last: processes end first
};

}  // namespace dpwa::kvstore::testing
