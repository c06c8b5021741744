#include "test/adapters/collective/ranks.h"

#include <cstdlib>

// with_ranks() for processes that mpirun has started: each is one rank.
namespace dpwa::test {

using namespace collective;

namespace {

int number(const char* variable) {
  const char* value = std::getenv(variable);
  return value == nullptr ? -1 : std::stoi(value);
}

}  // namespace

void with_ranks(int size, const std::function<void(Rank&)>& body,
                const std::function<void(GroupOptions&)>& adjust) {
  GroupOptions options;
  options.rank = number("OMPI_COMM_WORLD_RANK");
  options.size = number("OMPI_COMM_WORLD_SIZE");
  options.timeout = std::chrono::seconds(20);
  if (options.size != size) throw std::logic_error("wants " + std::to_string(size) + " processes");
  if (adjust) adjust(options);
  Rank rank(ProcessGroup::form(make_engine(EngineKind::mpi), Rendezvous::none(), options));
  body(rank);
  rank.group->leave(std::chrono::seconds(20));
}

}  // namespace dpwa::test
