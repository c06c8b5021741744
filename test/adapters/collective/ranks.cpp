#include "test/adapters/collective/ranks.h"

#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include "test/adapters/collective/tested_engine.h"
#include "test/support/eventually.h"

namespace dpwa::test {

using namespace collective;

void with_ranks(int size, const std::function<void(Rank&)>& body,
                const std::function<void(GroupOptions&)>& adjust) {
  const Engine engine = make_engine(tested_engine());
  constexpr std::chrono::seconds limit(20);
  const auto store = c10::make_intrusive<c10d::HashStore>();
  at_once(static_cast<std::size_t>(size), [&](std::size_t index) {
    GroupOptions options = tested_options();
    options.rank = static_cast<int>(index);
    options.size = size;
    options.form_timeout = limit;
    options.timeout = limit;
    if (adjust) adjust(options);
    Rank rank(ProcessGroup::form(engine, store, options));
    body(rank);
    rank.group->leave(limit);
  });
}

}  // namespace dpwa::test
