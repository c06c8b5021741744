#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

namespace dpwa::bench {

using Json = nlohmann::ordered_json;
using SteadyClock = std::chrono::steady_clock;

// One thing to measure, in a process of its own. What it answers is raw: counts, bytes, times in
// nanoseconds. scripts/lib/bench_*.py choose what to do, and make figures of the answers.
class Measurer {
 public:
  virtual ~Measurer() = default;
  // What to tell about it before it is asked anything.
  virtual Json facts() const { return Json::object(); }
  // Throws on a command that it does not know.
  virtual Json answer(const Json& command) = 0;
};

// By the kind in a job: makes what the job describes. Throws.
using Kinds = std::map<std::string, std::function<std::unique_ptr<Measurer>(const Json& job)>>;

// The body of every measuring program: takes a job and then commands from standard input, one JSON
// document a line, and answers each with a line on standard output, until the input ends. A job may
// be the argument instead, for a process of mpirun. Returns the exit code.
//   -> {"kind", "instruction_set" or not, ...}  <- {"ready": true, "version", ..., and facts()}
//   -> {"do": "mark"}    <- {"tcp_bytes", "cpu_s"}: received and used so far, "congestion_control"
//   -> {"do": "memory"}  <- {"smaps", "status"}: texts of /proc
//   -> any other         <- answer()
// A failure is answered with {"error": text, "usage": whether the job is not accepted}.
int serve(int argc, char** argv, const Kinds& kinds);

// Seconds of processor time that this process has used, user and system.
double processor_seconds();

inline std::int64_t nanoseconds_since(SteadyClock::time_point from) {
  return std::chrono::nanoseconds(SteadyClock::now() - from).count();
}

}  // namespace dpwa::bench
