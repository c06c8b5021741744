#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dpwa/config/config.h"
#include "dpwa/gossip/gossip_session.h"
#include "dpwa/snapshot/manifest.h"

namespace dpwa::python {

// A Python program as a node: the flat memory of its parameters, and the session that exchanges
// them. Backends gossip, embedded or attached to a node process, and null. One thread at a time;
// none of its calls needs the interpreter.
class Trainer {
 public:
  // Opens the log of the cluster file unless the process has one open. `threads` may share a pass
  // over the memory. Throws ConfigError for a back end that is not there, and std::invalid_argument
  // that names the tensor for one that cannot be shared.
  Trainer(const Config& config, std::vector<TensorSpec> tensors, unsigned threads);
  // In a process that was forked from the one that made it nothing is ended: its threads are not
  // there.
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  // total_bytes() of the manifest, zeroed.
  std::span<std::byte> memory() const;
  const Manifest& manifest() const;

  // As those of Adapter (adapters/adapter.h), before start().
  void mark(const std::string& what, const std::string& value);
  void require_same(const std::string& what, const std::string& value);
  void restore(const GossipState& state);

  void start();
  void update_send(double loss);
  StepReport update_wait(std::optional<double> loss);
  GossipState resume_state() const;
  void reload(const Config& fresh);
  FinishReport finish();
  void leave();

 private:
  struct Parts;
  Parts& own() const;  // throws std::logic_error in a forked process

  const pid_t process_;
  std::unique_ptr<Parts> parts_;
};

}  // namespace dpwa::python
