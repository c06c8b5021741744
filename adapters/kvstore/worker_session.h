#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "dpwa/base/time.h"
#include "dpwa/config/config.h"
#include "dpwa/kvclient/store_client.h"

namespace dpwa::kvstore {

// The membership of one training process among the workers of the store, and its waits for the
// servers. A wait ends with an answer or when the process is told to stop; it is logged from time
// to time, with what is known of the reason. Used by the training thread.
class WorkerSession {
 public:
  // Throws ConfigError when the files of the security section cannot be used.
  WorkerSession(const Config& config, std::uint64_t incarnation);

  kvclient::StoreClient& client() { return client_; }
  bool compresses() const { return compresses_; }  // pushes, where a key allows it

  // Takes part from the step that is returned. Throws std::runtime_error, in one line with the
  // reason, when that takes longer than kvstore.start_wait_ms or the process is told to stop.
  std::uint64_t join();
  // Of the last join(), also of one by wait_created().
  std::uint64_t first_step() const { return first_step_; }
  void leave();

  // The outcome of a call; `what` is for the log. None: told to stop.
  std::optional<kvclient::Outcome> wait(kvclient::Ticket ticket, const std::string& what);
  // Of an init. Throws std::runtime_error that names the key when a server refuses it, or nobody
  // has made it within kvstore.start_wait_ms. Joins again when this worker is left out meanwhile.
  void wait_created(kvclient::Ticket ticket, const std::string& key);
  // Until no worker takes part; this one has left. False: told to stop, or no server has answered
  // for kvstore.start_wait_ms.
  bool wait_until_all_have_left();

 private:
  // Logs that it waits, when that is due. Returns true when the process was told to stop and has
  // had time for what was about to be answered.
  bool look_up(TimePoint began, const std::string& what);
  std::string problems() const;
  // Throws std::runtime_error when servers refuse this worker for good.
  void check_refusal() const;

  const std::string self_;
  const Duration start_wait_;
  const Duration lost_after_;
  const std::size_t servers_;
  const std::size_t min_workers_;
  const bool compresses_;
  kvclient::StoreClient client_;
  TimePoint told_{};
  std::uint64_t first_step_ = 0;
  std::optional<TimePoint> stopping_;
};

}  // namespace dpwa::kvstore
