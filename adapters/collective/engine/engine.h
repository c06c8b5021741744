#pragma once

#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace c10d {
class ProcessGroup;
class Store;
}  // namespace c10d

namespace dpwa::collective {

// automatic: the engine for tensors in the memory of the CPU, which is Gloo.
enum class EngineKind { automatic, gloo, nccl, mpi };

// One member's view of a group that is to be formed.
struct GroupOptions {
  int rank = 0;
  int size = 1;
  // Counts the groups of a run: members of different epochs never form one group.
  std::uint64_t epoch = 0;
  // A hash of who is to be in it: members that were told of different ones never form one either.
  std::uint64_t members = 0;
  // By rank, for messages: what the program calls the members. Empty: they have ranks alone.
  std::vector<std::string> names;
  // Where this node listens for its peers: the host name or address by which they reach it. No
  // environment variable and no interface is asked.
  std::string own_address = "127.0.0.1";
  // How long forming waits for the last member and for all connections.
  std::chrono::milliseconds form_timeout{30'000};
  // How long an operation waits for one message of a peer before it fails.
  std::chrono::milliseconds timeout{300'000};
  // Called once, on a thread of the engine, when the group is of no further use: a member has gone
  // or has aborted, this one included. Returns soon, calls nothing of the group, throws nothing.
  std::function<void()> on_broken;
};

// A group as an engine has connected it.
struct Connection {
  // abort() ends the operations under way, from any thread, within milliseconds where the engine
  // can, and lets the others know; shutdown() leaves in order.
  c10::intrusive_ptr<c10d::ProcessGroup> group;
  // The rank whose end broke the group, as far as this member knows. Any thread, while `group`
  // lives.
  std::function<std::optional<int>()> lost_rank;
  // abort() that tells the others which rank is to blame; null: the engine cannot.
  std::function<void(int)> abandon{};
};

// What moves the bytes of the operations: a c10d back end. Stateless; any thread.
class Engine {
 public:
  virtual ~Engine() = default;
  virtual const std::string& name() const = 0;
  // Whether a launcher has brought the members together already: form() then needs no store.
  virtual bool has_members() const { return false; }
  // How the engine is set up, for the log; empty: there is nothing to say.
  virtual std::string setting() const { return {}; }
  // Connects this member with the `size - 1` others that call it with the same store. Throws what
  // c10d throws: call it through ProcessGroup::form.
  virtual Connection form(const c10::intrusive_ptr<c10d::Store>& store,
                          const GroupOptions& options) const = 0;
};

struct EngineSupport {
  EngineKind kind;
  std::string name;
  std::string absent;  // why this build has none; empty: it has one
};

// Every engine that dpwa knows, with what this build has.
std::vector<EngineSupport> known_engines();

// Throws CollectiveError (usage) for an engine that this build lacks; it says why, and which there
// are.
std::unique_ptr<Engine> make_engine(EngineKind kind);

}  // namespace dpwa::collective

// What each engine's source defines; CMake takes the stub NAME_absent.cpp where the engine cannot
// be built. absent(): why; empty where the engine is there. make(): null where it is not.
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
