#pragma once

#include <optional>
#include <string>
#include <vector>

#include "dpwa/config/config.h"
#include "dpwa/launch/place.h"

// From the processes of a launcher to the nodes of a cluster. Pure.

namespace dpwa::launch {

// The message of a process to the others when they meet.
struct Introduction {
  std::string host;  // where peers dial it: the address by which it talks to the meeting point
  bool host_given = false;  // by DPWA_HOST: taken as it is
  std::string bind;         // where it listens when that is not `host`
  std::uint16_t port = 0;
  std::string meeting_point;    // the numeric address at which it reached the meeting point
  std::vector<int> processors;  // that it may run on
};

std::string to_text(const Introduction& introduction);
// Throws std::runtime_error for anything but what to_text() makes.
Introduction introduction_from(const std::string& text);

// The name of the node of one rank: `pattern` with the rank for each config::rank_mark, or "rank3"
// where it is empty.
std::string node_name(int rank, std::string pattern = {});

// The nodes, in the order of ranks. A process on the host of the meeting point may know only a
// loopback address of itself. When others come from other hosts, its address is the one by which
// they reached the meeting point. Processes that were bound to processors of their own get these as
// `cores`. Throws std::runtime_error when no address of that host is known.
std::vector<NodeEntry> settle(const std::vector<Introduction>& introductions);

// The place of a process that needs no meeting, because seeds bring it together with the others.
struct SeededPlace {
  std::string name;    // empty: that of its host
  int local_rank = 0;  // among those on this host, where the launcher tells
  // Which part of how many its data is; none: the launcher does not tell how many there are.
  struct Share {
    int index = 0, of = 1;
  };
  std::optional<Share> share;
};

// `pattern`: of the name. Without one, pods have the names of their hosts, which are their own;
// they need not know how many they are. Throws ConfigError like find_place().
SeededPlace seeded_place(const LauncherEnvironment& environment, const std::string& pattern = {});

// The name of the node of a file that lists its nodes: by the pattern in Config::self, or ranks
// count them in their order. Throws ConfigError where the launcher has not started as many
// processes then.
std::string name_in_file(const Config& config, const LaunchPlace& place);

// The number of this process among those of its host, from 0: as its launcher says, or the file.
// In a file that lists several nodes this process may be another node than the launcher's rank:
// then a script started all of them with the variables of its own process, and the file counts.
// So it does where the variables are those of no place.
int local_rank(const Config& config, const LauncherEnvironment& environment);

}  // namespace dpwa::launch
