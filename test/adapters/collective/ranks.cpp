#include "test/adapters/collective/ranks.h"

#include "adapters/collective/engine/rendezvous.h"
#include "test/adapters/collective/tested_engine.h"
#include "test/support/eventually.h"

namespace dpwa::test {

using namespace collective;

void with_ranks(int size, const std::function<void(Rank&)>& body,
                const std::function<void(GroupOptions&)>& adjust) {
  const std::shared_ptr<const Engine> engine = make_engine(tested_engine());
  constexpr std::chrono::seconds limit(20);
  const auto host = Rendezvous::listen("127.0.0.1", limit);
  at_once(static_cast<std::size_t>(size), [&](std::size_t index) {
    const auto rendezvous = Rendezvous::connect(host.host(), host.port(), limit);
    GroupOptions options = tested_options();
    options.rank = static_cast<int>(index);
    options.size = size;
    options.form_timeout = limit;
    options.timeout = limit;
    if (adjust) adjust(options);
    Rank rank(ProcessGroup::form(engine, rendezvous.store(), options));
    body(rank);
    rank.group->leave(limit);
  });
}

}  // namespace dpwa::test
