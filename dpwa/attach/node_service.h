#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "dpwa/attach/protocol.h"
#include "dpwa/config/config.h"
#include "dpwa/config/reload.h"
#include "dpwa/gossip/gossip_session.h"
#include "dpwa/ipc/unix_socket.h"
#include "dpwa/snapshot/manifest.h"
#include "dpwa/snapshot/memory_file.h"

namespace dpwa {
class Endpoint;
class Gossip;
class Parameters;
}  // namespace dpwa

namespace dpwa::attach {

class RemoteParameters;

// The node process. It owns the network side of a node while training processes come and go, one at
// a time. A trainer that ends in order (finish, leave) takes the node off the network. When a
// trainer dies, the node stays there and serves the last snapshot; the next trainer continues from
// that snapshot, or from the weights of a peer that is ahead. Without a trainer, the node only
// answers dpwa status. Everything happens on the thread of run(), except for the network threads of
// the node, and the one that reads the cluster file again.
class NodeService {
 public:
  struct Signals {
    std::function<bool()> stop;         // called several times a second
    std::function<bool()> take_reload;  // likewise; true: read the cluster file again, once
    // Whether a signal must wait until the process has seen stop(). During a start or a final
    // average, which may take long, it need not: the process may end at any time.
    std::function<void(bool)> defer = [](bool) {};
  };

  // `reload` reads the cluster file again, on a thread of its own. It throws ConfigError.
  NodeService(Config config, std::function<Config()> reload, Signals signals);
  ~NodeService();

  // Runs until stop(). Throws std::runtime_error when another process runs for this node, and
  // ConfigError when the files of the security section cannot be used.
  void run();

 private:
  // A model that a trainer has described but has not started with yet.
  struct Model {
    Manifest manifest;
    std::shared_ptr<MemoryFile> parameters;  // null: on a device of the trainer
    std::size_t copies_at_once = 0;          // there; 0: not there
    unsigned threads = 1;
    std::optional<std::uint64_t> seed;
  };
  // The second half of a step, which a trainer asks for on its own only with a step budget.
  struct SecondHalf {
    std::optional<std::chrono::steady_clock::time_point> due_since;  // none: it is not due
    bool comes_soon = false;  // the last one came so soon that it pays to poll for the next
  };
  void admit(ipc::MessageSocket caller);
  void check(const nlohmann::json& told) const;  // throws unless it is meant for this node
  static Model model_in(const nlohmann::json& told, const std::string& frame, FileDescriptor file);
  static Model plain_model_in(const nlohmann::json& told);
  void serve();
  nlohmann::json answer(const nlohmann::json& request);
  StepAnswer answer(const StepRequest& request);
  std::function<double()> loss_in(const StepRequest& request);
  void at_any_time(const std::function<void()>& lasting);
  void start(const nlohmann::json& resume, double waited);  // `waited`: seconds so far
  Config with_trainers_seed(Config config) const;
  void take_up(Config fresh);  // of a reload
  void stay_visible();
  void leave();
  void trainer_is_gone();

  BackgroundReload reload_;
  const Signals signals_;
  Config config_;
  ipc::MessageSocket trainer_;
  std::string trainer_name_;  // "process 123"
  std::optional<Model> next_;
  SecondHalf second_half_;
  GossipState state_;
  std::optional<std::uint64_t> trainer_seed_;  // gossip.seed of the last trainer that started

  std::shared_ptr<MemoryFile> memory_;  // of parameters_
  std::unique_ptr<Parameters> parameters_;
  RemoteParameters* remote_ = nullptr;  // the same, where they are on a device
  std::uint64_t sends_ = 0;             // first halves of this trainer
  std::unique_ptr<Gossip> gossip_;      // null: off the network
  std::unique_ptr<Endpoint> waiting_;   // off the network, if the address is free
  std::string not_visible_;             // why it was not free, as already logged
};

}  // namespace dpwa::attach
