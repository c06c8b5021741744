#include "adapters/launch/rendezvous.h"

#include <c10/util/Logging.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <future>
#include <memory>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <utility>

#include "adapters/collective/engine/error.h"
#include "adapters/launch/sockets.h"
#include "dpwa/base/aside.h"

namespace dpwa::launch {

using collective::CollectiveError;
using collective::Failure;
namespace {

constexpr const char* left_key = "dpwa/left";
constexpr std::chrono::milliseconds between_calls(50);

// TCPStore on a numeric address, without a look-up of its name and the warning if that fails.
c10::intrusive_ptr<c10d::TCPStore> make_store(const std::string& address,
                                              const c10d::TCPStoreOptions& options) {
  const WithoutNameServers numbers_alone;
  const ErrorsOnly quiet;
  return c10::make_intrusive<c10d::TCPStore>(address, options);
}

using Store = c10::intrusive_ptr<c10d::TCPStore>;

// The client of a store waits for ever for the answer of a program that is none.
Store make_client(const std::string& address, const c10d::TCPStoreOptions& options,
                  const std::function<void()>& waits) {
  const auto made = std::make_shared<std::promise<Store>>();
  std::future<Store> store = made->get_future();
  finish_aside([made, address, options] {
    try {
      made->set_value(make_store(address, options));
    } catch (...) {
      made->set_exception(std::current_exception());
    }
  });
  const auto deadline = std::chrono::steady_clock::now() + options.timeout;
  while (store.wait_for(between_calls) != std::future_status::ready) {
    waits();
    if (std::chrono::steady_clock::now() >= deadline)
      throw std::runtime_error("what listens there is no meeting point");
  }
  return store.get();
}

c10d::TCPStoreOptions options_for(std::uint16_t port, std::chrono::milliseconds timeout) {
  c10d::TCPStoreOptions options;
  options.port = port;
  options.waitWorkers = false;
  options.timeout = timeout;
  return options;
}

}  // namespace

ErrorsOnly::ErrorsOnly() : before_(FLAGS_caffe2_log_level) {
  constexpr int error_level = 2;
  FLAGS_caffe2_log_level = std::max(before_, error_level);
}

ErrorsOnly::~ErrorsOnly() {
  FLAGS_caffe2_log_level = before_;
}

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
    throw collective::translate(std::current_exception(), what, "store");
  }
}

Rendezvous Rendezvous::connect(const std::string& host, std::uint16_t port,
                               std::chrono::milliseconds timeout,
                               const std::function<void()>& waits) {
  const std::string what = "meeting at " + host + ":" + std::to_string(port);
  try {
    // The store's own client would pause long between attempts, and log each of them.
    const auto address = await_listener(host, port, timeout);
    return {host, port, false, make_client(address, options_for(port, timeout), waits)};
  } catch (const std::runtime_error& error) {
    throw CollectiveError(Failure::timeout, what, "store", error.what());
  } catch (const std::exception&) {
    throw collective::translate(std::current_exception(), what, "store");
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

}  // namespace dpwa::launch
