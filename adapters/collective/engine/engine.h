#pragma once

#include <c10/util/intrusive_ptr.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "dpwa/collective/step_group.h"
#include "dpwa/config/config.h"

namespace c10d {
class ProcessGroup;
class Store;
}  // namespace c10d

namespace dpwa::collective {

// automatic: the project's own.
using EngineKind = CollectiveEngine;

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

// A c10d back end, which carries out the operations. Any thread.
struct Engine {
  std::string name;
  // Whether a launcher has already connected the members: `form` then needs no store.
  bool has_members = false;
  std::string setting{};  // how the engine is set up, for the log; empty: there is nothing to say
  // Connects this member with the `size - 1` others that call it with the same store. Exceptions of
  // c10d pass through, so call it through ProcessGroup::form.
  using Form = Connection(const c10::intrusive_ptr<c10d::Store>& store,
                          const GroupOptions& options);
  std::function<Form> form{};
};

struct EngineSupport {
  EngineKind kind;
  std::string name;
  std::string absent;              // why this build has none; empty: it has one
  std::function<Engine()> make{};  // as make_engine(); null: absent
};

// Each is defined in the engine's source. If an engine cannot be built, it comes from
// absent.cpp.in.
EngineSupport dpwa_engine();
EngineSupport gloo_engine();
EngineSupport nccl_engine();
EngineSupport mpi_engine();

// Every engine that dpwa knows, and whether this build has it.
std::vector<EngineSupport> known_engines();

// Throws CollectiveError (usage) for an engine that this build lacks or that this process cannot
// use, with the reason and the engines that it has. NCCL uses the GPU that is current on this
// thread.
Engine make_engine(EngineKind kind);

}  // namespace dpwa::collective
