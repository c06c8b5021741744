#include "adapters/collective/engine/rendezvous.h"

#include <c10/util/Logging.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <utility>

#include "adapters/collective/engine/error.h"
#include "adapters/collective/engine/signature.h"
#include "adapters/collective/engine/sockets.h"
#include "dpwa/base/backoff.h"

namespace dpwa::collective {
namespace {

constexpr const char* left_key = "dpwa/left";

// TCPStore on a numeric address, without a look-up of its name and the warning if that fails.
c10::intrusive_ptr<c10d::TCPStore> make_store(const std::string& address,
                                              const c10d::TCPStoreOptions& options) {
  static constexpr int error_level = 2;
  class ErrorsOnly {
   public:
    ErrorsOnly() { FLAGS_caffe2_log_level = std::max(before_, error_level); }
    ~ErrorsOnly() { FLAGS_caffe2_log_level = before_; }

   private:
    int before_ = FLAGS_caffe2_log_level;
  };
  const WithoutNameServers numbers_alone;
  const ErrorsOnly quiet;
  return c10::make_intrusive<c10d::TCPStore>(address, options);
}

c10d::TCPStoreOptions options_for(std::uint16_t port, std::chrono::milliseconds timeout) {
  c10d::TCPStoreOptions options;
  options.port = port;
  options.waitWorkers = false;
  options.timeout = timeout;
  return options;
}

// Keys of the store. outcome: "ok" once all have come, or the problem; the first value is kept.
constexpr const char* outcome_key = "dpwa/outcome";
constexpr const char* terms_key = "dpwa/terms";
constexpr const char* arrived_key = "dpwa/arrived";

std::string hex(std::uint64_t number) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(number));
  return text;
}

std::string rank_key(int rank) {
  return "dpwa/rank/" + std::to_string(rank);
}

// "rank 2 has" or "ranks 2, 5 have".
std::string missing(c10d::Store& store, const GroupOptions& options) {
  std::string ranks;
  int count = 0;
  for (int rank = 0; rank < options.size; ++rank) {
    if (store.check({rank_key(rank)})) continue;
    ranks += (count++ == 0 ? "" : ", ") + shown_rank(static_cast<std::size_t>(rank), options.names);
  }
  return count == 1 ? "rank " + ranks + " has" : "ranks " + ranks + " have";
}

// The problem with this member, as its arrival shows it; empty: none.
std::string problem_of(c10d::Store& store, const GroupOptions& options, const std::string& engine) {
  const std::string terms = std::to_string(options.size) + " ranks, epoch " +
                            std::to_string(options.epoch) + ", engine " + engine +
                            (options.members == 0 ? "" : ", members " + hex(options.members));
  const std::string who =
      "rank " + shown_rank(static_cast<std::size_t>(options.rank), options.names);
  const std::string agreed = store.compareSet(terms_key, "", terms);
  if (agreed != terms) return who + " came for " + terms + "; the others for " + agreed;
  if (options.rank < 0 || options.rank >= options.size) {
    return who + " does not exist in a group of " + std::to_string(options.size);
  }
  if (store.add(rank_key(options.rank), 1) > 1) return "two members joined as " + who;
  return {};
}

// The outcome, once there is one. It polls, because a wait that times out would make the store's
// client write to stderr, and could not be stopped.
std::optional<std::string> outcome_of(c10d::Store& store, std::chrono::milliseconds limit,
                                      const std::stop_token& stop) {
  constexpr Backoff pauses{std::chrono::microseconds(250), std::chrono::milliseconds(20)};
  const auto deadline = std::chrono::steady_clock::now() + limit;
  for (unsigned looks = 1; !store.check({outcome_key}); ++looks) {
    if (stop.stop_requested() || std::chrono::steady_clock::now() >= deadline) return std::nullopt;
    std::this_thread::sleep_for(pauses.nominal(looks));
  }
  return store.get_to_str(outcome_key);
}

}  // namespace

Rendezvous::Rendezvous(std::string host, std::uint16_t port, bool hosts,
                       c10::intrusive_ptr<c10d::Store> store)
    : host_(std::move(host)), port_(port), hosts_(hosts), store_(std::move(store)) {}
Rendezvous::Rendezvous(Rendezvous&&) noexcept = default;
Rendezvous& Rendezvous::operator=(Rendezvous&&) noexcept = default;
Rendezvous::~Rendezvous() = default;

Rendezvous Rendezvous::listen(const std::string& host, std::chrono::milliseconds timeout,
                              std::uint16_t port) {
  const std::string what = "hosting a rendezvous on " + host;
  try {
    ListeningSocket socket(host, port);
    port = socket.port();
    auto options = options_for(port, timeout);
    options.isServer = true;
    options.masterListenFd = socket.descriptor();
    auto store = make_store(socket.address(), options);
    socket.release();  // the store closes it
    return {host, port, true, std::move(store)};
  } catch (const std::system_error& error) {
    throw CollectiveError(Failure::usage, what, "store", error.what());
  } catch (const std::exception&) {
    throw translate(std::current_exception(), what, "store");
  }
}

Rendezvous Rendezvous::none() {
  return {"", 0, false, {}};
}

Rendezvous Rendezvous::connect(const std::string& host, std::uint16_t port,
                               std::chrono::milliseconds timeout) {
  const std::string what = "meeting at " + host + ":" + std::to_string(port);
  try {
    // The store's own client would pause long between attempts, and log each of them.
    const auto address = await_listener(host, port, timeout);
    return {host, port, false, make_store(address, options_for(port, timeout))};
  } catch (const std::runtime_error& error) {
    throw CollectiveError(Failure::timeout, what, "store", error.what());
  } catch (const std::exception&) {
    throw translate(std::current_exception(), what, "store");
  }
}

bool Rendezvous::leave(int others, std::chrono::milliseconds limit) noexcept {
  if (!store_) return true;
  try {
    if (!hosts_) {
      store_->add(left_key, 1);
      return true;
    }
    const auto deadline = std::chrono::steady_clock::now() + limit;
    while (store_->add(left_key, 0) < others) {
      if (std::chrono::steady_clock::now() >= deadline) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  } catch (const std::exception&) {
    return false;  // the host has ended
  }
}

void admit(const c10::intrusive_ptr<c10d::Store>& store, const GroupOptions& options,
           const std::string& engine, const std::stop_token& stop) {
  const std::string operation = "forming a group";
  const auto failed = [&](Failure failure, const std::string& reason) {
    return CollectiveError(failure, operation, engine, reason);
  };
  try {
    const std::string problem = problem_of(*store, options, engine);
    if (!problem.empty()) {
      store->compareSet(outcome_key, "", problem);
    } else if (store->add(arrived_key, 1) == options.size) {
      store->compareSet(outcome_key, "", "ok");
    }
    const auto outcome = outcome_of(*store, options.form_timeout, stop);
    if (outcome == "ok") return;
    if (outcome) throw failed(Failure::usage, *outcome);
    if (stop.stop_requested()) throw failed(Failure::cancelled, "given up");
    throw failed(Failure::timeout, missing(*store, options) + " not come within " +
                                       std::to_string(options.form_timeout.count()) + " ms");
  } catch (const std::exception&) {
    throw translate(std::current_exception(), operation, engine);
  }
}

}  // namespace dpwa::collective
