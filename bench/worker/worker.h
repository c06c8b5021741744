#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/worker/child.h"

namespace dpwa::bench {

// What one node did in one window.
struct Window {
  std::uint64_t pulls = 0;
  std::uint64_t bytes = 0;  // of parameters
  double seconds = 0;       // from the first request to the end of the last pull
  std::vector<double> latency_us;
  std::vector<double> trainer_latency_us;
  Json failed = Json::object();  // outcome -> how often
};

// One node of a benchmark, in a process of its own.
class Worker {
 public:
  virtual ~Worker() = default;
  // Pulls, one after the other, until `seconds` have passed; at least one.
  Window pull_for(double seconds);
  // Pulls so often: for nodes that wait for one another at each pull.
  Window pull_times(std::uint64_t count);

 private:
  // Adds what one pull was to everything in the window but its seconds.
  virtual void pull_once(Window& window) = 0;
};

// Makes the node that `job` describes: it serves from now on. Throws.
std::unique_ptr<Worker> make_pull_worker(const Json& job);
std::unique_ptr<Worker> make_raw_worker(const Json& job);
std::unique_ptr<Worker> make_store_worker(const Json& job);  // one "pull" is a push and a pull
std::unique_ptr<Worker> make_store_server(const Json& job);  // never pulls
std::unique_ptr<Worker> make_node_process(const Json& job);  // for a trainer that attaches to it

// The body of a worker process: takes the job and then commands from standard input, answers on
// standard output, until the input ends. Returns the exit code.
//   -> the job                          <- {"ready": true}
//   -> {"do": "mark"}                   <- {"cpu_s", "tcp_bytes"} so far
//   -> {"do": "pull", "seconds" or "count", "record"}  <- {"pulls", "bytes", "seconds", "failed"}
//   -> {"do": "report"}                 <- latencies of the recorded windows, memory, sockets
// A failure is answered with {"error": text}.
int run_worker();

}  // namespace dpwa::bench
