#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dpwa/config/config.h"

namespace dpwa::cli {

// What dpwa doctor finds out on one machine, before a run.
struct DoctorFacts {
  struct Own {  // a process of the file that belongs to this machine
    std::string name;
    std::uint16_t port = 0;
    bool runs = false;      // it answers already
    std::string problem{};  // why it cannot listen; empty: it can
  };
  struct Other {
    std::string name;
    std::string address;      // HOST:PORT
    bool is_resolved = true;  // the host
    bool answers = false;
    bool nobody_listens = false;
    std::string error{};  // why it does not answer
    double answer_ms = 0;
    double round_trip_ms = 0;  // 0: not known
    double bytes_per_s = 0;    // of a pull by this machine; 0: not known
    std::uint64_t model_bytes = 0;
    std::optional<double> clock_ahead_s{};  // of that machine
  };
  bool by_seeds = false;  // the file lists no nodes: the others are seeds, where nobody need be yet
  std::vector<Own> own;
  std::vector<Other> others;
  Backend backend = Backend::gossip;
  std::uint64_t model_bytes = 0;  // 0: not known
  std::uint64_t available_bytes = 0;
  std::uint64_t open_files = 0;  // the limit of a process
  double timeout_s = 0;          // gossip.timeout_ms
  // Settings of the kernel; 0: not known.
  std::uint64_t connections_at_once = 0;  // net.core.somaxconn
  std::uint64_t receive_buffer = 0;       // the largest of net.ipv4.tcp_rmem
  std::uint64_t send_buffer = 0;          // of tcp_wmem
  unsigned first_outgoing_port = 0;
  unsigned last_outgoing_port = 0;
};

struct Check {
  enum class Level { good, warning, failure };
  Level level = Level::good;
  std::string text;
};

// Pure.
std::vector<Check> checks_of(const DoctorFacts& facts);

}  // namespace dpwa::cli
