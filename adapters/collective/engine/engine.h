#pragma once

#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "dpwa/config/config.h"

namespace c10d {
class ProcessGroup;
class Store;
}  // namespace c10d

namespace dpwa {
class Security;
}

namespace dpwa::collective {

// automatic: the project's own.
using EngineKind = CollectiveEngine;

// One member's view of a group that is to be formed.
struct GroupOptions {
  int rank = 0;
  int size = 1;
  // Counts the groups of a run: members of different epochs never form one group.
  std::uint64_t epoch = 0;
  // A hash of the members: processes that were given different members never form one group either.
  std::uint64_t members = 0;
  // By rank, for messages: the program's names of the members. Empty: they have only ranks.
  std::vector<std::string> names;
  // Where this node listens for its peers: the host name or address that they use. Neither
  // environment variables nor interfaces are looked at.
  std::string own_address = "127.0.0.1";
  // Of connections that the engine encrypts; null: none are.
  std::shared_ptr<const Security> security;
  // Whether members of one host may share memory.
  bool same_host = true;
  // Ends forming early.
  std::stop_token stop{};
  // How long forming waits for the last member and for all connections.
  std::chrono::milliseconds form_timeout{30'000};
  // How long an operation waits for one message of a peer before it fails.
  std::chrono::milliseconds timeout{300'000};
  // Called once, on a thread of the engine, when the group is broken: a member, perhaps this one,
  // has ended or aborted. It must return soon, must not call the group, and must not throw.
  std::function<void()> on_broken;
};

// A group as an engine has connected it.
struct Connection {
  // abort() ends the operations under way, from any thread, within milliseconds if the engine can,
  // and informs the others; shutdown() leaves in order.
  c10::intrusive_ptr<c10d::ProcessGroup> group;
  // The rank whose end broke the group, as far as this member knows. Any thread, while `group`
  // lives.
  std::function<std::optional<int>()> lost_rank;
  // abort() that tells the others which rank is to blame; null: the engine cannot.
  std::function<void(int)> abandon{};
  // Whether abort() and abandon() end each wait of this process for an operation.
  bool ends_waits = false;
  std::string setting{};  // how the members are connected, for the log; empty: as always
  // Operations on tensors of a GPU end on its streams: wait() makes the current one wait, and the
  // caller not. A limit of a wait would be that of the operation, and abort the group.
  bool stream_ordered = false;
};

// A c10d back end, which carries out the operations. Stateless; any thread.
class Engine {
 public:
  virtual ~Engine() = default;
  virtual const std::string& name() const = 0;
  // Whether a launcher has already connected the members: form() then needs no store.
  virtual bool has_members() const { return false; }
  // How the engine is set up, for the log; empty: there is nothing to say.
  virtual std::string setting() const { return {}; }
  // Connects this member with the `size - 1` others that call it with the same store. Exceptions of
  // c10d pass through, so call it through ProcessGroup::form.
  virtual Connection form(const c10::intrusive_ptr<c10d::Store>& store,
                          const GroupOptions& options) const = 0;
};

struct EngineSupport {
  EngineKind kind;
  std::string name;
  std::string absent;  // why this build has none; empty: it has one
};

// Every engine that dpwa knows, and whether this build has it.
std::vector<EngineSupport> known_engines();

// Throws CollectiveError (usage) for an engine that this build lacks or that this process cannot
// use, with the reason and the engines that it has. NCCL uses the GPU that is current on this
// thread.
std::unique_ptr<Engine> make_engine(EngineKind kind);

}  // namespace dpwa::collective

// Each engine's source defines these functions. If an engine cannot be built, they come from
// absent.cpp.in. absent(): the reason; empty: the engine is there. make(): null if it is absent.
namespace dpwa::collective::dpwa_engine {
std::string absent();
std::unique_ptr<Engine> make();
}  // namespace dpwa::collective::dpwa_engine

namespace dpwa::collective::gloo_engine {
std::string absent();
std::unique_ptr<Engine> make();
}  // namespace dpwa::collective::gloo_engine

namespace dpwa::collective::nccl_engine {
std::string absent();
std::unique_ptr<Engine> make();
}  // namespace dpwa::collective::nccl_engine

namespace dpwa::collective::mpi_engine {
std::string absent();
std::unique_ptr<Engine> make();
}  // namespace dpwa::collective::mpi_engine
