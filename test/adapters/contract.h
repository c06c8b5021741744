#pragma once

#include <ATen/core/Tensor.h>

#include <barrier>
#include <functional>
#include <string>
#include <vector>

#include "dpwa/config/config.h"

namespace dpwa::test {

// A back end under the contract of adapters/adapter.h: so many nodes in this process, set up by
// `tune`.
struct BackEnd {
  std::string name;
  std::size_t nodes;
  std::function<void(Config&)> tune;
  std::size_t servers = 0;           // of the parameter server, s1, s2, ...
  bool optimizer_elsewhere = false;  // its state is not that of the program's optimizer
};

// Every back end. A new one is one more line here.
const std::vector<BackEnd>& back_ends();

// Runs `check` for every back end on test_device(), naming both in failures; on a device other than
// the CPU without backend collective.
void for_every_back_end(const std::function<void(const BackEnd&, at::Device)>& check);

// One node of a cluster that runs in this process.
class Participant {
 public:
  Participant(std::size_t index, const Config& config, std::barrier<>& barrier)
      : index(index), config(config), barrier_(barrier) {}
  ~Participant() { barrier_.arrive_and_drop(); }  // who failed or ended holds nobody up
  Participant(const Participant&) = delete;
  Participant& operator=(const Participant&) = delete;

  void wait_for_all() { barrier_.arrive_and_wait(); }

  const std::size_t index;
  const Config& config;

 private:
  std::barrier<>& barrier_;
};

// Runs `body` for each node of a fresh cluster of that back end, all at once, each on a thread of
// its own. Rethrows the first failure once all are done.
void run_nodes(const BackEnd& back_end, const std::function<void(Participant&)>& body);

}  // namespace dpwa::test
