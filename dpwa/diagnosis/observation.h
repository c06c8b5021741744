#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace dpwa::diagnosis {

// A TCP connection as the process at one end sees it. Those at both ends have each other's ports.
struct Connection {
  std::uint16_t own_port = 0;
  std::uint16_t port = 0;
  double rtt_ms = 0;
  std::uint64_t segments = 0;  // sent
  std::uint64_t segments_again = 0;
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
  double rtt_deviation_ms = 0;  // of round trips from the smoothed one, smoothed
};

// A peer as a node of gossip sees it.
struct Peer {
  std::uint64_t ok = 0;  // attempts to pull from it
  std::uint64_t failed = 0;
  std::uint64_t failures = 0;   // in a row
  bool is_unreachable = false;  // the last one got no connection or no answer
  bool rests = false;           // it answered late, and is not asked for a while
};

// A node or server at one moment. Counters and times grow while its process lives.
struct Process {
  bool is_server = false;
  bool connects = false;  // the system at its address took a connection
  bool answers = false;
  bool nobody_listens = false;
  bool left = false;          // in order, as the others say
  std::string error;          // why it does not answer
  bool lost_trainer = false;  // a node process whose trainer is gone
  bool trains = false;
  std::uint64_t incarnation = 0;
  std::string host;               // key of Observation::hosts
  std::string group;              // of the scheduler
  std::set<unsigned> processors;  // that it may use; empty: not known
  std::uint64_t steps = 0;
  double compute_s = 0;
  double publish_s = 0;
  double blend_s = 0;
  double wait_s = 0;
  double loss = 0;             // NaN: none
  double to_mean = 0;          // distance of its model to the mean of all; NaN: not known
  std::vector<double> sketch;  // of its model; empty: none
  double cpu_s = 0;
  double cpu_wait_s = 0;
  double main_cpu_s = 0;
  double main_cpu_wait_s = 0;
  double disk_bytes = 0;  // read and written
  std::uint64_t pulls_ok = 0;
  std::uint64_t clipped = 0;
  bool waits = false;  // for others, as it says
  std::map<std::string, Peer> peers;
  std::vector<Connection> connections;
};

// The times are of all processors together.
struct Host {
  unsigned processors = 0;
  double busy_s = 0;
  double idle_s = 0;
  double disk_wait_s = 0;
  double stolen_s = 0;
};

// What all processes of a cluster, and their hosts, said at one moment.
struct Observation {
  double at_s = 0;
  std::map<std::string, Process> processes;
  std::map<std::string, Host> hosts;
};

}  // namespace dpwa::diagnosis
