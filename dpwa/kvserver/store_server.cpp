#include "dpwa/kvserver/store_server.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <thread>
#include <utility>

#include "dpwa/base/incarnation.h"
#include "dpwa/base/thread_failure.h"
#include "dpwa/base/thread_name.h"
#include "dpwa/base/threads.h"
#include "dpwa/kvserver/store_run.h"
#include "dpwa/log/log.h"
#include "dpwa/security/security.h"

namespace dpwa::kvserver {
namespace {

// Three quarters of the memory of this machine.
std::uint64_t default_memory() {
  const auto pages = static_cast<std::uint64_t>(std::max(0L, ::sysconf(_SC_PHYS_PAGES)));
  const auto page_bytes = static_cast<std::uint64_t>(std::max(0L, ::sysconf(_SC_PAGESIZE)));
  return pages * page_bytes / 4 * 3;
}

Config checked(Config config, const std::string& name) {
  config.self = name;
  const auto& servers = config.kvstore.servers;
  if (std::ranges::find(servers, name, &NodeEntry::name) == servers.end()) {
    fail_at_key(config, "kvstore.servers",
                "no server is named '" + name + "'; accepted: a name of kvstore.servers");
  }
  if (config.kvstore.memory_bytes == 0) config.kvstore.memory_bytes = default_memory();
  return config;
}

}  // namespace

class StoreServer::Thread {
 public:
  Thread(Config config, const std::string& name)
      : config_(checked(std::move(config), name)), run_(begin()) {}
  ~Thread() { stop(); }

  void start(Duration patience) {
    current()->listen(patience);
    port_ = current()->endpoint().port();
    thread_ = start_background_thread(
        [this] { run_or_end("the thread of the store", [this] { serve(); }); });
  }

  void stop() {
    {
      const MutexLock lock(mutex_);
      stopped_ = true;
      if (run_) run_->stop();
    }
    if (thread_.joinable()) thread_.join();
  }

  std::optional<std::string> reload_security() {
    const MutexLock lock(mutex_);
    if (!run_) return std::nullopt;  // it could not begin again, and ends
    const auto& security = run_->endpoint().local().security;
    return security ? security->reload() : std::nullopt;
  }

  std::uint16_t port() const { return port_; }
  int failure() const { return failure_; }

 private:
  // Incarnations grow even when the clock stands still. `known`: the highest number of this name.
  std::shared_ptr<StoreRun> begin(std::optional<std::uint64_t> known = std::nullopt)
      DPWA_REQUIRES(mutex_) {
    const auto after = known ? incarnation_after(*known, incarnation_) : std::nullopt;
    incarnation_ = std::max(after.value_or(incarnation_ + 1), wall_clock_us());
    return std::make_shared<StoreRun>(config_, incarnation_);
  }

  void serve() {
    name_thread("dpwa-store");
    try {
      while (true) {
        current()->run();
        if (current()->refused()) failure_ = 2;
        if (!current()->deposed() || !begin_again()) return;
      }
    } catch (const std::runtime_error& error) {
      log(LogLevel::error, "kvserver", std::string("cannot begin again: ") + error.what());
      failure_ = 1;
    }
  }

  std::shared_ptr<StoreRun> current() {
    const MutexLock lock(mutex_);
    return run_;
  }

  bool begin_again() {
    const auto known = current()->outdated_by();
    log(LogLevel::warn, "kvserver",
        known ? "the other processes know a later start of this server, which does not answer: the "
                "clock of this machine was set back, or is behind; begins again under a later "
                "number, empty"
              : "the other servers continued without this one because it was silent: it begins "
                "again, empty");
    {
      const MutexLock lock(mutex_);
      run_.reset();  // closes the port
      if (stopped_) return false;
      run_ = begin(known);
    }
    current()->listen(config_.kvstore.start_wait);
    return true;
  }

  const Config config_;
  Mutex mutex_;
  std::uint64_t incarnation_ DPWA_GUARDED_BY(mutex_) = 0;
  std::shared_ptr<StoreRun> run_ DPWA_GUARDED_BY(mutex_);
  bool stopped_ DPWA_GUARDED_BY(mutex_) = false;
  std::atomic<int> failure_{0};
  std::uint16_t port_ = 0;
  std::thread thread_;
};

StoreServer::StoreServer(Config config, const std::string& name)
    : thread_(std::make_unique<Thread>(std::move(config), name)) {}
StoreServer::~StoreServer() = default;
void StoreServer::start(Duration patience) {
  thread_->start(patience);
}
void StoreServer::stop() {
  thread_->stop();
}
std::optional<std::string> StoreServer::reload_security() {
  return thread_->reload_security();
}
std::uint16_t StoreServer::port() const {
  return thread_->port();
}
int StoreServer::failure() const {
  return thread_->failure();
}

}  // namespace dpwa::kvserver
