#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "dpwa/base/settings.h"
#include "dpwa/base/time.h"
#include "dpwa/kvstore/beat_interval.h"
#include "dpwa/kvstore/epoch.h"

namespace dpwa::kvstore {

inline constexpr std::size_t max_snapshots_held = 64;

// As the wire carries Beat::settings.
inline constexpr std::size_t max_shared_settings = 16;
inline constexpr std::size_t max_setting_bytes = 64;  // of a name

// The snapshots that a server finds on its disk when it starts.
struct Stock {
  bool listed = false;               // the fields below are known
  bool had_complete = false;         // there is a file, valid or damaged, of a complete snapshot
  std::vector<SnapshotId> held;      // its parts: the newest max_snapshots_held
  std::optional<SnapshotId> loaded;  // what its slices are from; number 0: it begins empty
  bool operator==(const Stock&) const = default;
};

// Sent several times a second by every worker and server to every (other) server.
struct Beat {
  std::uint64_t epoch = 0;
  // Worker: the step that it pushes next. Server: the highest such step that its slices have seen.
  std::uint64_t clock = 0;
  bool waiting = false;  // worker: it waits for others and does not compute
  // Worker: its training loop runs and wants to take part. False while the worker still takes part:
  // it leaves.
  bool joins = false;
  // Worker: the time of its longest recent step, without waits; 0: it has made too few steps.
  std::uint64_t longest_step_us = 0;
  // Server: the last snapshot that it has heard of. Worker: as WorkerEngine::past_snapshot().
  std::uint32_t snapshot = 0;
  // Server: the servers in state `filling` that have stored everything that this one has for them.
  std::vector<std::uint16_t> filled;
  // Server: the last snapshot of this run of which its part is on its disk, and the last of which
  // the part is on the disk or was given up.
  std::uint32_t stored = 0;
  std::uint32_t over = 0;
  std::uint64_t updates = 0;  // server: that it has made since it was started
  Stock stock{};              // server, before the first epoch
  // Worker that joins: it counts the steps of each key apart, and learns from the servers with
  // which step of a key to begin (Answer::step). Otherwise it begins with the step of the epoch.
  bool own_steps = false;
  // Worker that has made its last step, and waits until no worker trains.
  bool at_end = false;
  std::uint64_t past_epoch = 0;  // worker: as WorkerEngine::past_epoch()
  // Worker with own_steps that does not wait: its program has made a call since the last beat.
  bool active = false;
  // Worker that wants to take part, and server: of its cluster file, what all processes of a run
  // have to agree on. A server compares them with its own. Empty: nothing is stated.
  Settings settings{};
  // Server: the other processes of which it has heard within silent_after.
  std::vector<MemberId> hears{};
  bool operator==(const Beat&) const = default;
};

struct WatchOptions {
  bool replicas = false;
  // Before the first epoch. 0 is not "all", as it is in the cluster file: the number of workers is
  // known only there.
  std::size_t min_workers = 1;
  // A process that is silent for this long counts as gone.
  Duration silent_after = default_lost_after;
  // A worker counts as hung when others wait for it and its computation takes longer than a limit.
  // The limit is this factor times the longest recent step of any worker, but at least hung_min; in
  // the first steps of the worker it is hung_at_first. So a worker that is always four times slower
  // than the others is never left out.
  double hung_factor = 8;
  Duration hung_min = std::chrono::seconds(2);
  Duration hung_at_first = std::chrono::seconds(60);
};

// What a server knows of the other members, and which epoch should follow (next_epoch.cpp). All
// servers keep this; the first server that is up and not silent proposes.
//
// Members that do not hear one another would wait for each other for ever, so servers say in their
// beats whom they hear. A server is *deaf* to a process that another one has heard all the time for
// silent_after / 2. Of servers that do not hear each other one is left out, and so is a server that
// is deaf to half of the workers or more, unless it alone has values. A worker to which a server is
// deaf is left out otherwise. Nobody is taken in before all servers that are up hear it. Pure; one
// owner, one thread.
class MemberWatch {
 public:
  // `started`: all members of later epochs count as heard of at that time.
  MemberWatch(const WatchOptions& options, MemberId self, TimePoint started);

  // Returns whether this process has not been heard before.
  bool heard(const MemberId& from, const Beat& beat, TimePoint now);
  // A message on epochs shows as well that the process is there.
  void answered(const MemberId& from, TimePoint now);
  // So do `bytes` that have come since the last look, whole messages or not. More than beats have
  // are those of values: a worker that waits for its push to arrive does not compute.
  void sends(const MemberId& from, std::uint64_t bytes, TimePoint now);
  // To be called some times in each beat. Of the time between two calls at most half of
  // silent_after counts as silence of others, and a quarter of hung_min as computation: a process
  // that stood still for longer did not listen.
  void look(TimePoint now);
  // Whether another process has the name of this worker: it takes part, or wants to, and was heard
  // of lately. One that has just been killed counts until it has been silent for long enough.
  bool is_taken(const MemberId& worker, TimePoint now) const;
  // The number of a process that had this name before and no longer does, where it is higher than
  // that of `caller`, whom others would take for an earlier one: see base/incarnation.h.
  std::optional<std::uint64_t> known_above(const MemberId& caller, bool is_server,
                                           TimePoint now) const;
  // A snapshot has steps of this process.
  void know(const MemberId& process);
  // Whether this worker has left, or has been told that it was left out.
  bool has_left(const MemberId& worker) const;
  // The process of this member has ended, it seems: a connection was refused or reset. What it sent
  // before may still arrive, and does not show that it lives; what comes silent_after / 4 later
  // does.
  void lost(const MemberId& member, TimePoint now);
  // Beat::hears of this server.
  std::vector<MemberId> hears(TimePoint now) const;
  // Compares what the servers hear. To be called once in each beat.
  void compare_hearing(const Epoch& current, TimePoint now);
  // The servers and the processes to which they are deaf.
  std::vector<std::pair<std::string, std::string>> deaf(TimePoint now) const;
  void installed(const Epoch& epoch, TimePoint now);

  // The epoch to propose. Nothing when no change is needed, or when another server has to propose.
  // `own`: the beat that this server would send.
  std::optional<Epoch> successor(const Epoch& current, const Beat& own, TimePoint now) const;

  // Before the first epoch: the snapshot to start from, once all servers have said what they have;
  // number 0: none, the servers begin empty. When there were snapshots but none that all servers
  // have, one line that says so.
  struct Start {
    SnapshotId from;
    std::string problem;
    std::set<SnapshotId> common;  // those that all servers have
  };
  std::optional<Start> start(const Epoch& current, const Beat& own, TimePoint now) const;

  // Among the servers that are up: the last snapshot that all have stored, and the last that is
  // stored or given up at all of them.
  std::uint32_t stored_everywhere(const Epoch& current, const Beat& own) const;
  std::uint32_t over_everywhere(const Epoch& current, const Beat& own) const;
  // The updates of all servers since they were started, as far as this one has heard.
  std::uint64_t updates_everywhere(const Epoch& current, const Beat& own) const;
  // Whether it has heard so in this epoch of all that are up.
  bool knows_updates(const Epoch& current, const Beat& own) const;

  // Before the first epoch: that one follows this epoch of a run that the servers have lost, with
  // the workers that are still in it. It begins once as many are heard of, or after the time in
  // which each could connect again with those that are. Number 0: it follows none.
  void follow(const Epoch& lost, TimePoint now);
  // Whether another server is still in this epoch.
  bool others_are_in(const Epoch& epoch, TimePoint now) const;

  // The servers that are gone and were the only ones to have their slices: the run cannot go on
  // before they answer again.
  std::vector<std::string> missing(const Epoch& current, TimePoint now) const;
  // The servers of this epoch that had slices which nobody has any more, because every server that
  // had them was started again since. The run cannot go on.
  std::vector<std::string> started_again(const Epoch& epoch) const;
  // Whether every other server of the file has said something since this process began.
  bool has_heard_servers(const Epoch& epoch) const;
  // How long this worker may compute before it counts as hung.
  Duration hung_after(const Epoch& epoch, const std::string& worker) const;

 private:
  struct View {
    std::uint64_t incarnation = 0;
    Beat beat;
    TimePoint heard{};
    TimePoint since{};  // when it began to compute its current step
    std::optional<TimePoint> waits_since{};
    std::optional<TimePoint> lost{};
    bool has_beaten = false;
    TimePoint first{};  // beat
  };

  View* view_of(const MemberId& member);  // null: that process is not known
  bool alive(const MemberId& member, TimePoint now) const;
  void show_life(View& view, TimePoint now) const;
  // Whether the server says that it hears this process. Of one that has said nothing yet: yes.
  bool hears(const MemberId& server, const MemberId& member, TimePoint now) const;
  std::vector<MemberId> live_servers(const Epoch& epoch, TimePoint now,
                                     ServerState state = ServerState::up) const;
  std::set<MemberId> live_workers(const Epoch& epoch, TimePoint now) const;
  // For at least so long.
  bool is_deaf(const MemberId& server, const MemberId& member, TimePoint now, Duration age) const;
  Duration deaf_after() const { return options_.silent_after / 2; }
  bool is_gone(const Epoch& epoch, const MemberId& server, TimePoint now) const;
  bool deaf_to_workers(const Epoch& epoch, const MemberId& server, TimePoint now) const;
  void leave_out_deaf_servers(Epoch& next, TimePoint now) const;
  bool heard_by_servers(const Epoch& epoch, const MemberId& member, TimePoint now) const;
  bool may_be_filled(const Epoch& epoch, const MemberId& server, TimePoint now) const;
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
  // Whether another member waits for this worker, which may compute for so long.
  bool holds_up(const View& worker, const MemberId& other, Duration limit, TimePoint now) const;
  void remove_workers(Epoch& next, const Epoch& current, TimePoint now) const;
  // `first`: the step and the epoch with which they begin.
  void add_workers(Epoch& next, const Epoch& current, const WorkerEntry& first,
                   TimePoint now) const;

  const WatchOptions options_;
  const MemberId self_;
  std::map<std::string, View> views_;
  std::map<std::string, std::uint64_t> known_;                     // incarnations of know()
  std::map<std::pair<MemberId, MemberId>, TimePoint> deaf_since_;  // server, process
  TimePoint looked_{};
  Epoch lost_;  // number 0: none
  TimePoint lost_since_{};
};

}  // namespace dpwa::kvstore
