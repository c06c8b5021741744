#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <stdexcept>
#include <string>

#include "dpwa/attach/pass_server.h"
#include "dpwa/attach/protocol.h"
#include "dpwa/gossip/gossip_session.h"
#include "dpwa/gossip/parameters.h"
#include "dpwa/ipc/unix_socket.h"
#include "dpwa/snapshot/manifest.h"
#include "dpwa/snapshot/memory_file.h"

namespace dpwa::attach {

// Memory for the parameters of a trainer, to be shared with a node process. Throws std::bad_alloc.
std::shared_ptr<MemoryFile> allocate_parameters(std::size_t bytes);

// Gossip averaging of a trainer whose network side is a node process (`dpwa node`) of the same user
// on the same host. Both share the memory of the parameters, so a step copies no more than with
// Gossip; it costs one round trip over a Unix socket, and with a step budget another one unless the
// first has blended. Without a budget, what arrives after update_send() is blended in the next
// step. Every call but leave() throws std::runtime_error when the node process refuses it or has
// ended.
class AttachedGossip : public GossipSession {
 public:
  // `parameters` come from allocate_parameters() and have the layout of `manifest`. `threads` may
  // share a pass over them. Throws ConfigError for more blocks than the model can be cut into.
  AttachedGossip(const Config& config, Manifest manifest, std::shared_ptr<MemoryFile> parameters,
                 unsigned threads);
  // Parameters on a device: this process makes the passes over them, while it waits for answers
  // (PassServer). A step costs one round trip more for each. They outlive this object.
  AttachedGossip(const Config& config, Parameters& parameters);

  void restore(const GossipState& state) override;
  GossipState resume_state() const override;
  void start() override;  // waits for a node process as long as gossip.start_wait
  void update_send(const std::function<double()>& loss) override;
  StepReport update_wait(const std::function<double()>& loss = {}) override;
  void show(const std::string& name, double value) override;
  void reload(const Config& fresh) override;  // the node process reads its own file again
  FinishReport finish() override;
  void leave() override;
  // The node process, which has to answer, then leaves the network.
  void break_off() override { broken_off_ = true; }

 private:
  void attach();
  nlohmann::json ask(const nlohmann::json& request, int descriptor = -1);
  nlohmann::json answer_in(const std::string& message);  // throws the error that it holds
  StepAnswer ask_half(const StepRequest& request);
  std::string receive(const std::function<bool()>& give_up = nullptr);
  std::runtime_error gone() const;
  void close();

  const Config config_;
  const Manifest manifest_;
  const std::shared_ptr<MemoryFile> parameters_;  // null: on a device
  const unsigned threads_;
  std::unique_ptr<PassServer> passes_;  // there
  ipc::MessageSocket node_;             // closed when there is no connection
  GossipState state_;
  bool resumed_ = false;
  std::atomic<bool> broken_off_ = false;
  std::optional<StepReport> ended_;  // of this step, if update_wait() has nothing left to ask for
};

}  // namespace dpwa::attach
