#include "bench/collective/bare_group.h"

#include <chrono>

namespace dpwa::bench {

BareGroup form_bare_group(const std::string& engine, int rank, int size, std::uint16_t port) {
  constexpr auto patience = std::chrono::seconds(60);
  auto kind = collective::EngineKind::automatic;
  for (const auto& known : collective::known_engines())
    if (known.name == engine) kind = known.kind;
  collective::GroupOptions options;
  options.rank = rank;
  options.size = size;
  auto meeting = rank == 0 ? collective::Rendezvous::listen("127.0.0.1", patience, port)
                           : collective::Rendezvous::connect("127.0.0.1", port, patience);
  BareGroup group{collective::make_engine(kind), nullptr};
  group.members = collective::ProcessGroup::form(group.engine, meeting, options);
  meeting.leave(size - 1, patience);
  return group;
}

}  // namespace dpwa::bench
