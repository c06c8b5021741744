#pragma once

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "dpwa/config/config.h"
#include "dpwa/rules/step_report.h"
#include "dpwa/snapshot/blocks.h"
#include "dpwa/snapshot/manifest.h"

namespace dpwa {

// The state that a gossip node keeps over a restart, besides its parameters.
struct GossipState {
  double clock = 0;
  std::uint64_t lineage = 0;      // descent of the weights; 0 = none yet
  std::uint64_t incarnation = 0;  // of the process that wrote it
};

// One training process in gossip averaging, wherever its network side runs: in the process itself
// (Gossip) or in a node process of the same host (attach/AttachedGossip). One (trainer) thread.
//
// A step is update_send (publish, begin a pull), the caller's optimizer step, update_wait (blend
// what has arrived).
class GossipSession {
 public:
  virtual ~GossipSession() = default;

  virtual void restore(const GossipState& state) = 0;  // before start(): resume from a checkpoint
  virtual GossipState resume_state() const = 0;

  // Goes on the network and brings the parameters to common weights, together with the nodes that
  // start as well. Bounded by twice gossip.start_wait and a few gossip.timeout: others are waited
  // for during the first, a transfer from a peer that trains may need the second. Throws
  // std::runtime_error when the node cannot listen at its address, when every node that answered
  // refused this one, or when fewer than gossip.min_nodes run.
  virtual void start() = 0;

  // `loss` is read when the snapshot is complete, because the value of a tensor on a device may
  // arrive with the snapshot.
  virtual void update_send(const std::function<double()>& loss) = 0;
  // `loss`: the training loss now, for the factor of a blend in this call, as in the original dpwa;
  // read only when there is one. None: the loss of the last snapshot.
  virtual StepReport update_wait(const std::function<double()>& loss = {}) = 0;

  // As Adapter::show(), while it is on the network.
  virtual void show(const std::string& name, double value) = 0;

  // Takes over the reloadable keys of a file loaded again for this node, between two steps, and
  // logs which values it took over and which need a restart. Throws ConfigError where log.file
  // cannot be opened; after any exception nothing has changed.
  virtual void reload(const Config& fresh) = 0;

  // Takes the final global average when configured, serves the last snapshot to those that still
  // want it, and leaves the network. Bounded by three times gossip.finish_wait, and a few
  // gossip.timeout, however many peers hang.
  virtual FinishReport finish() = 0;
  virtual void leave() = 0;  // leaves at once
  // Ends the wait of start() or finish() soon, with a std::runtime_error. Any thread.
  virtual void break_off() = 0;
};

// The blocks of the model that pulls ask for in turn; gossip.blocks is their number. Throws
// ConfigError when the model is too small for that number.
inline std::vector<ByteRange> pull_blocks(const Config& config, const Manifest& manifest) {
  try {
    return layer_blocks(manifest, config.gossip.blocks);
  } catch (const std::invalid_argument& why) {
    fail_at_key(config, "gossip.blocks", why.what());
  }
}

}  // namespace dpwa
