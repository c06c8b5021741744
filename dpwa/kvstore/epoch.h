#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dpwa::kvstore {

// One process: its name in the cluster file, and the incarnation that grows with every start.
struct MemberId {
  std::string name;
  std::uint64_t incarnation = 0;
  auto operator<=>(const MemberId&) const = default;
};

enum class ServerState : std::uint8_t {
  down = 1,     // holds nothing
  filling = 2,  // receives copies and updates; does not answer workers yet
  up = 3,
};

struct ServerEntry {
  MemberId id;
  ServerState state = ServerState::down;
  bool operator==(const ServerEntry&) const = default;
};

// One snapshot of all servers on their disks. Ordered by age.
struct SnapshotId {
  std::uint64_t run = 0;     // Epoch::run of the servers that wrote it
  std::uint32_t number = 0;  // from 1, in the order in which a run writes them; 0: none
  auto operator<=>(const SnapshotId&) const = default;
};

struct WorkerEntry {
  MemberId id;
  std::uint64_t first_step = 0;  // it takes part in the steps from this one on
  // Of a worker that counts the steps of each key apart (Beat::own_steps): the epoch with which it
  // came. It takes part in the steps of programs that begin from then on. 0: it does not count so.
  std::uint64_t since = 0;
  bool operator==(const WorkerEntry&) const = default;
};

// The servers that serve and the workers that train. Each epoch is decided by a majority of the
// members of the epoch before (epoch_engine.h), so all members see the same sequence of epochs.
// Every message of the store carries the number of its sender's epoch.
struct Epoch {
  std::uint64_t number = 0;          // 0: none yet
  std::vector<ServerEntry> servers;  // in the order of the cluster file, always all of them
  std::vector<WorkerEntry> workers;  // in the order of their names
  // The number of the first epoch after all servers had started, and the snapshot that they started
  // from: the same in all epochs until all have ended.
  std::uint64_t run = 0;
  SnapshotId from{};
  // Workers that no longer train by themselves after at least one step (of any number, if they
  // count the steps of each key apart), in the order of their names. One that is lost is not among
  // them.
  std::vector<std::string> left{};
  // Workers that have made their last step and wait until no worker trains, for the final values.
  // Members, for which no step waits. In the order of their names.
  std::vector<MemberId> at_end{};
  bool operator==(const Epoch&) const = default;

  const WorkerEntry* worker(const std::string& name) const;
  std::optional<std::size_t> server(const std::string& name) const;
  bool is_at_end(const MemberId& member) const;
  // Whether this incarnation of the process takes part: as a worker, at its end too, or as a server
  // that is not down.
  bool has(const MemberId& member) const;
  // Whether that is a later process of a member. It may vote for the former one, which is gone.
  bool has_successor(const MemberId& member) const;
  std::size_t servers_taking_part() const;  // those that are not down
  std::size_t members() const { return workers.size() + at_end.size() + servers_taking_part(); }
};

// The servers that have the slices of the server `home`. With one replica, those are `home` and the
// next server in the order of the file. The first of the two that is up answers the workers; the
// other, unless it is down, has to store what is acknowledged.
struct Holders {
  std::optional<std::size_t> primary;
  std::optional<std::size_t> backup;
  bool operator==(const Holders&) const = default;
};
Holders holders_of(const Epoch& epoch, std::size_t home, bool replicas);

// Whether `voters` (members of `epoch` or their successors, each name once) decide. At least one of
// them is a server that takes part, and they are one of these:
// - more than half of the members, or half of them with the first server that is not down;
// - all servers that take part: workers that were killed, however many, stop nobody;
// - all members, where successors vote for those that are gone.
// Any two sets of the first two kinds have a member in common. A set of the third has every member
// that is left, so it knows all that was decided, but for what members decided that are all gone:
// epochs of which no server is left. Before the first epoch all servers of the file have to agree.
bool is_majority(const Epoch& epoch, const std::vector<MemberId>& voters);

}  // namespace dpwa::kvstore
