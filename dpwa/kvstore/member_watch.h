#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "dpwa/base/time.h"
#include "dpwa/kvstore/epoch.h"

namespace dpwa::kvstore {

inline constexpr std::size_t max_snapshots_held = 64;

// What a server that starts has on its disk.
struct Stock {
  bool listed = false;               // the rest is known
  bool had_complete = false;         // there is a file, sound or not, of a snapshot that all had
  std::vector<SnapshotId> held;      // whose part it has, the newest max_snapshots_held of them
  std::optional<SnapshotId> loaded;  // its slices are of this one; number 0: it begins empty
  bool operator==(const Stock&) const = default;
};

// Sent to every server, some times a second, by every worker and every other server.
struct Beat {
  std::uint64_t epoch = 0;
  // Worker: the step that it pushes next. Server: the highest such step that its slices know of.
  std::uint64_t clock = 0;
  bool waiting = false;  // worker: for others, not for its own computation
  // Worker: its training loop is there and wants to take part. False while it does: it leaves.
  bool joins = false;
  // Worker: the longest of its recent steps, without waits; 0: it has made too few.
  std::uint64_t longest_step_us = 0;
  // Server: the last that it has heard of. Worker: as WorkerEngine::past_snapshot().
  std::uint32_t snapshot = 0;
  // Server: the servers in state filling that have stored all that this one has for them.
  std::vector<std::uint16_t> filled;
  // Server: the last snapshot of this run of which its part is on its disk, and the last of which
  // the part is on the disk or was given up.
  std::uint32_t stored = 0;
  std::uint32_t over = 0;
  Stock stock{};  // server, before the first epoch
  // Worker that joins: it counts the steps of each key apart, and learns from the servers with
  // which step of a key to begin (Answer::step). Otherwise it begins with the step of the epoch.
  bool own_steps = false;
  bool operator==(const Beat&) const = default;
};

struct WatchOptions {
  bool replicas = false;
  std::size_t min_workers = 1;  // before the first epoch
  // A process that has not been heard of for so long is gone.
  Duration silent_after = std::chrono::seconds(2);
  // A worker for which others wait, and that computes longer than this, hangs: so many times the
  // longest of the recent steps of all workers, but at least hung_min; in its own first steps
  // hung_at_first. So a worker that is always four times slower than the others is never left out.
  double hung_factor = 8;
  Duration hung_min = std::chrono::seconds(2);
  Duration hung_at_first = std::chrono::seconds(60);
};

// What a server knows of the other members, and the epoch that should follow: all servers keep
// this, and the first of those that are up and heard of proposes. Pure; one owner, one thread.
class MemberWatch {
 public:
  // `started`: all members of later epochs count as heard of at that time.
  MemberWatch(const WatchOptions& options, MemberId self, TimePoint started);

  void heard(const MemberId& from, const Beat& beat, TimePoint now);
  // Its process is known to have ended: a connection was refused, or reset.
  void lost(const MemberId& member);
  void installed(const Epoch& epoch, TimePoint now);

  // The epoch to propose; nothing when all is as it should be, or another server has to propose.
  // `own`: the beat that this server would send.
  std::optional<Epoch> successor(const Epoch& current, const Beat& own, TimePoint now) const;

  // Before the first epoch: the snapshot to start from, once all servers have said what they have;
  // number 0: none, they begin empty. A line instead when there were snapshots and none of them is
  // at all servers.
  struct Start {
    SnapshotId from;
    std::string problem;
  };
  std::optional<Start> start(const Epoch& current, const Beat& own, TimePoint now) const;

  // Of the servers that are up: the last snapshot that all have stored, and the last that is over
  // at all.
  std::uint32_t stored_everywhere(const Epoch& current, const Beat& own) const;
  std::uint32_t over_everywhere(const Epoch& current, const Beat& own) const;

  // Before the first epoch: that one follows this epoch of a run that the servers have lost, with
  // the workers that are still in it. It begins once as many are heard of, or after `silent_after`
  // with those that are. Number 0: it follows none.
  void follow(const Epoch& lost, TimePoint now);
  // Whether another server is still in this epoch.
  bool others_are_in(const Epoch& epoch, TimePoint now) const;

  // The servers that are gone and were the only ones to have their slices: the run cannot go on
  // before they answer again.
  std::vector<std::string> missing(const Epoch& current, TimePoint now) const;
  // After which this worker is held to hang, if it computes.
  Duration hung_after(const Epoch& epoch, const std::string& worker) const;

 private:
  struct View {
    std::uint64_t incarnation = 0;
    Beat beat;
    TimePoint heard{};
    TimePoint since{};  // when it began to compute the step that it pushes next
    bool gone = false;
  };

  bool alive(const MemberId& member, TimePoint now) const;
  bool hangs(const WorkerEntry& worker, const Epoch& epoch, TimePoint now) const;
  bool leaves(const WorkerEntry& worker, const Epoch& epoch) const;
  bool proposes(const Epoch& current, TimePoint now) const;
  bool at_start(const Epoch& current, const Beat& own, TimePoint now) const;
  const Beat& beat_of(const ServerEntry& server, const Beat& own) const;
  std::optional<Epoch> first_epoch(const Epoch& current, const Beat& own, TimePoint now) const;
  bool can_spare(const Epoch& epoch, std::size_t server, TimePoint now) const;
  bool is_filled(const Epoch& epoch, std::size_t server, const Beat& own) const;
  // How many workers have to be there for the first epoch.
  std::size_t workers_to_begin(TimePoint now) const;
  void change_servers(Epoch& next, const Epoch& current, const Beat& own, TimePoint now) const;
  void change_workers(Epoch& next, const Epoch& current, const Beat& own, TimePoint now) const;

  const WatchOptions options_;
  const MemberId self_;
  std::map<std::string, View> views_;
  Epoch lost_;  // number 0: none
  TimePoint lost_since_{};
};

}  // namespace dpwa::kvstore
