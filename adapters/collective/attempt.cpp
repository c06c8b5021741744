#include "adapters/collective/attempt.h"

#include <chrono>
#include <exception>
#include <optional>
#include <utility>

#include "adapters/collective/engine/rendezvous.h"

namespace dpwa::collective {

void Attempt::run(const std::shared_ptr<const Engine>& engine, GroupOptions options,
                  const std::string& host_address, std::uint16_t port) {
  std::unique_ptr<ProcessGroup> result;
  std::string why;
  std::optional<Rendezvous> store;
  try {
    if (engine->has_members()) {
      store = Rendezvous::none();
    } else if (port == 0) {
      store = Rendezvous::listen(options.own_address, options.form_timeout);
      const MutexLock lock(mutex);
      store_port = store->port();
    } else {
      store = Rendezvous::connect(host_address, port, options.form_timeout);
    }
    result = ProcessGroup::form(engine, *store, options, stop.get_token());
  } catch (const CollectiveError& error) {
    why = error.reason();
  } catch (const std::exception& error) {
    why = error.what();
  }
  const bool formed = result != nullptr;
  {
    const MutexLock lock(mutex);
    group = std::move(result);
    problem = why;
    done = true;
  }
  // The others may still read the store.
  if (store && formed && !engine->has_members())
    store->leave(options.size - 1, std::chrono::seconds(5));
}

}  // namespace dpwa::collective
