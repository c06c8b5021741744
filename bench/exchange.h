#pragma once

#include <cstdint>
#include <stdexcept>
#include <vector>

#include "bench/serve.h"

namespace dpwa::bench {

// What one node did in one window.
struct Window {
  std::uint64_t pulls = 0;
  std::uint64_t bytes = 0;  // of parameters
  std::vector<std::int64_t> latency_ns;
  std::vector<std::int64_t> trainer_latency_ns;
  Json failed = Json::object();  // outcome -> how often
};

// A node that gets parameters from others, again and again:
//   -> {"do": "pull", "seconds" or "count"}
//   <- {"pulls", "bytes", "ns", "latency_ns", "trainer_latency_ns", "failed"}
// ns: from the first request to the end of the last pull. With `count`: for nodes that wait for one
// another at each pull.
class Exchanger : public Measurer {
 public:
  Json answer(const Json& command) final;

 private:
  // Adds what one pull was to everything in the window.
  virtual void pull_once(Window& window) = 0;
};

// A process that only serves others.
class Server : public Measurer {
 public:
  Json answer(const Json&) final { throw std::logic_error("it serves only"); }
};

}  // namespace dpwa::bench
