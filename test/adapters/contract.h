#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "dpwa/config/config.h"
#include "test/support/node_processes.h"

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
// the CPU without several nodes of backend collective, and in a NodeProcess with them alone.
void for_every_back_end(const std::function<void(const BackEnd&, at::Device)>& check);

// One node of a cluster that runs in this process, or of which this process is a node.
class Participant {
 public:
  Participant(std::size_t index, const Config& config, Meeting& meeting)
      : index(index), config(config), meeting_(meeting) {}
  ~Participant() { meeting_.drop(); }
  Participant(const Participant&) = delete;
  Participant& operator=(const Participant&) = delete;

  void wait_for_all() { meeting_.wait_for_all(); }
  // Whether all nodes have the same number; waits for all.
  bool same_for_all(std::uint64_t number);

  const std::size_t index;
  const Config& config;

 private:
  Meeting& meeting_;
};

// Runs `body` for each node of a fresh cluster of that back end, all at once, each on a thread of
// its own; in a NodeProcess for its own node alone. Rethrows the first failure once all are done.
void run_nodes(const BackEnd& back_end, const std::function<void(Participant&)>& body);

}  // namespace dpwa::test
