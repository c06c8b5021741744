#include "dpwa/cli/doctor_checks.h"

#include <cmath>
#include <cstdio>
#include <utility>

#include "dpwa/config/text.h"

namespace dpwa::cli {
namespace {

using Level = Check::Level;
using Checks = std::vector<Check>;

constexpr double much_ahead_s = 1;
constexpr double least_bytes_per_s = 100e6;  // that buffers should allow

std::string with(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

void check_port(const DoctorFacts& facts, const DoctorFacts::Own& own, Checks& checks) {
  const std::string port = "port " + std::to_string(own.port) + " of " + own.name;
  if (own.runs) {
    checks.push_back({Level::good, own.name + " runs already"});
  } else if (!own.problem.empty()) {
    checks.push_back({Level::failure, port + ": " + own.problem});
  } else {
    checks.push_back({Level::good, port + " is free"});
  }
  if (own.port < facts.first_outgoing_port || own.port > facts.last_outgoing_port) return;
  checks.push_back(
      {Level::warning, port + " is one of those that this system uses for outgoing connections (" +
                           std::to_string(facts.first_outgoing_port) + " to " +
                           std::to_string(facts.last_outgoing_port) +
                           "): another program may have it at the start"});
}

void check_clock(const DoctorFacts::Other& other, Checks& checks) {
  if (!other.clock_ahead_s || std::abs(*other.clock_ahead_s) < much_ahead_s) return;
  checks.push_back(
      {Level::warning, "the clock of " + other.name + " is " +
                           with("%.1f s", std::abs(*other.clock_ahead_s)) +
                           (*other.clock_ahead_s > 0 ? " ahead of" : " behind") +
                           " that of this machine: certificates and the times of logs need equal "
                           "clocks"});
}

// What a pull takes, and whether a buffer of this kernel is too small for the way.
void check_path(const DoctorFacts& facts, const DoctorFacts::Other& other, Checks& checks) {
  if (other.round_trip_ms > 0) {
    const double round_trip_s = other.round_trip_ms / 1e3;
    for (const auto& [name, bytes] :
         {std::pair("tcp_rmem", facts.receive_buffer), std::pair("tcp_wmem", facts.send_buffer)}) {
      // Half of a buffer is for what the kernel keeps beside the bytes.
      const double most = static_cast<double>(bytes) / 2 / round_trip_s;
      if (bytes == 0 || most >= least_bytes_per_s) continue;
      checks.push_back(
          {Level::warning,
           "a round trip to " + other.name + " takes " + with("%.0f ms", other.round_trip_ms) +
               ", and the largest of net.ipv4." + name + " is " + std::to_string(bytes) +
               " bytes: a connection takes " + with("%.0f MB/s", most / 1e6) +
               " at most; accepted: " + with("%.0f", 2 * least_bytes_per_s * round_trip_s) +
               " or more"});
    }
  }
  if (other.bytes_per_s == 0) return;
  const std::string rate = "a pull from " + other.name + " brings " +
                           with("%.0f MB/s", other.bytes_per_s / 1e6) + " in " +
                           with("%.2f ms", other.round_trip_ms) + " a round trip";
  const double model_s = static_cast<double>(other.model_bytes) / other.bytes_per_s;
  const bool in_time = facts.backend != Backend::gossip || model_s <= facts.timeout_s;
  checks.push_back({in_time ? Level::good : Level::warning,
                    rate + (in_time ? ""
                                    : ", so its model takes " + with("%.1f s", model_s) +
                                          ", longer than gossip.timeout_ms: raise that, or "
                                          "use transport.encoding or gossip.blocks")});
}

// All others may connect to a process at the same moment.
void check_kernel(const DoctorFacts& facts, Checks& checks) {
  const std::uint64_t needed = facts.own.size() + facts.others.size();
  if (facts.connections_at_once == 0 || facts.connections_at_once >= needed) return;
  checks.push_back({Level::warning,
                    "net.core.somaxconn is " + std::to_string(facts.connections_at_once) +
                        ", and so many processes may connect at once: " + std::to_string(needed)});
}

void check_other(const DoctorFacts& facts, const DoctorFacts::Other& other, Checks& checks) {
  const std::string who = other.name + " at " + other.address;
  if (!other.is_resolved && facts.by_seeds) {
    checks.push_back({Level::warning, who + ": its host is not known here yet; nodes ask for it "
                                            "until gossip.start_wait_ms is over"});
  } else if (!other.is_resolved) {
    checks.push_back({Level::failure, who + ": its host cannot be resolved"});
  } else if (other.answers) {
    checks.push_back({Level::good, who + " answers in " + with("%.1f ms", other.answer_ms)});
    check_clock(other, checks);
    check_path(facts, other, checks);
  } else if (other.nobody_listens) {
    checks.push_back({Level::good, who + ": its host answers, and it does not run yet"});
  } else {
    checks.push_back({Level::warning, who + ": " + other.error +
                                          "; its host is off, or something on the way drops "
                                          "packets"});
  }
}

// Times the size of its parameters: the parameters themselves, and docs/ARCHITECTURE.md#memory.
double memory_factor(Backend backend) {
  switch (backend) {
    case Backend::gossip:
      return 5;
    case Backend::collective:
      return 2;
    case Backend::kvstore:
      return 2.1;
    case Backend::null:
      break;
  }
  return 1;
}

void check_memory(const DoctorFacts& facts, Checks& checks) {
  const std::string there =
      with("%.1f GB of memory are available", 1e-9 * static_cast<double>(facts.available_bytes));
  if (facts.model_bytes == 0) {
    checks.push_back({Level::good, there + " (--model-bytes compares it with what nodes need)"});
    return;
  }
  const double needed = memory_factor(facts.backend) * static_cast<double>(facts.model_bytes) *
                        static_cast<double>(facts.own.size());
  const bool is_enough = needed <= static_cast<double>(facts.available_bytes);
  checks.push_back({is_enough ? Level::good : Level::failure,
                    there + ", and " + config::counted(facts.own.size(), "node") +
                        " of this machine need at least " + with("%.1f GB", 1e-9 * needed) +
                        " beside activations and the optimizer's state"});
}

void check_files(const DoctorFacts& facts, Checks& checks) {
  constexpr std::uint64_t beside_peers = 64;
  const std::uint64_t needed = 2 * (facts.own.size() + facts.others.size()) + beside_peers;
  if (facts.open_files >= needed) {
    checks.push_back(
        {Level::good, std::to_string(facts.open_files) + " files may be open in a process"});
    return;
  }
  checks.push_back({Level::failure, "only " + std::to_string(facts.open_files) +
                                        " files may be open in a process, and this cluster needs " +
                                        std::to_string(needed) + ": ulimit -n " +
                                        std::to_string(needed)});
}

}  // namespace

std::vector<Check> checks_of(const DoctorFacts& facts) {
  Checks checks;
  if (facts.own.empty() && !facts.by_seeds)
    checks.push_back({Level::warning, "no node or server of the file belongs to this machine"});
  for (const auto& own : facts.own) check_port(facts, own, checks);
  for (const auto& other : facts.others) check_other(facts, other, checks);
  check_kernel(facts, checks);
  check_memory(facts, checks);
  check_files(facts, checks);
  return checks;
}

}  // namespace dpwa::cli
