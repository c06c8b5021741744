#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "dpwa/base/time.h"
#include "dpwa/config/config.h"
#include "dpwa/kvclient/store_client.h"
#include "dpwa/kvworker/wait_log.h"

namespace dpwa {
class StatusNotes;
}

namespace dpwa::kvstore {

// The key that a wait is for, and the call by which all workers have to push it; empty: they make
// steps.
std::string words_for_key(const std::string& key, const std::string& call);

// The membership of one training process among the workers of the store, and its waits for the
// servers. A wait ends with an answer or when the process is told to stop; it is logged from time
// to time, with what is known of the reason. Used by the training thread; break_off() by any.
class WorkerSession {
 public:
  // `security`: of the node; null: none. What it reads again counts for later connections.
  WorkerSession(const Config& config, std::uint64_t incarnation,
                std::shared_ptr<Security> security);

  kvclient::StoreClient& client() { return client_; }
  Compression compression() const { return compression_; }  // of pushes, where a key allows it

  // Joins. Returns the first step in which this worker takes part. Throws std::runtime_error, in
  // one line with the reason, when that takes longer than kvstore.start_wait_ms or the process is
  // told to stop.
  std::uint64_t join();
  // The result of the last join(), also of one by wait_created().
  std::uint64_t first_step() const { return first_step_; }
  // Leaves. After finish() it votes on the members until it is none of them any more, for some
  // seconds at most: without it the others may be too few to do without a server that has just
  // died.
  void leave();

  // From now on the notes say whom a wait() is for that is not over after a second. They outlive
  // this.
  void note_waits_in(StatusNotes& notes) { notes_ = &notes; }
  // As if the process were told to stop, at once.
  void break_off() { broken_off_ = true; }
  bool told_to_stop() const;
  // The outcome of a call; `what` is for the log. None when the process was told to stop.
  std::optional<kvclient::Outcome> wait(kvclient::Ticket ticket, const std::string& what);
  // Called in each wait() that is not over soon, some times a second; it may wait itself.
  void on_look(std::function<void()> look) { on_look_ = std::move(look); }
  // Between two questions about something that is to come; `began`: the first. Logged as waits are.
  // False: told to stop.
  bool pause(TimePoint began, const std::string& what);
  // Waits for an init. Throws std::runtime_error that names the key when a server refuses it, or
  // nobody has made it within kvstore.start_wait_ms. Joins again when this worker is left out
  // meanwhile. `call`: what the first worker has to call before; empty: start().
  void wait_created(kvclient::Ticket ticket, const std::string& key, const std::string& call = {});
  // At the end: from now on every wait also ends, as if the process was told to stop, when no
  // server has answered for kvstore.start_wait_ms.
  void give_up_without_servers();
  // The last step has been made.
  void finish();
  // Waits until no worker trains: pulls then give the final values, unless this worker is left out
  // meanwhile. False when the wait has ended before, also because the servers have not decided for
  // kvstore.start_wait_ms that the last worker no longer trains.
  bool wait_end();
  // What is known of the servers that do not answer, for a line; empty: all do.
  std::string problems() const { return wait_log_.problems(); }

 private:
  // Whether the process was told to stop and answers under way have had time to arrive, or the
  // servers are gone at the end.
  bool gives_up(TimePoint now);
  // The same, and logs from time to time that it waits.
  bool look_up(TimePoint began, const std::string& what);
  bool servers_are_gone(TimePoint now);
  // Throws std::runtime_error when servers refuse this worker for good.
  void check_refusal() const;
  void look();
  class Note;  // in the status: whom a wait is for that is not over after a second

  const std::string self_;
  const Duration start_wait_;
  const Duration lost_after_;
  const std::size_t servers_;
  const std::size_t min_workers_;
  const Compression compression_;
  kvclient::StoreClient client_;
  WaitLog wait_log_;
  std::uint64_t first_step_ = 0;
  std::optional<TimePoint> stopping_;
  std::optional<TimePoint> answered_;  // a server, the last time; set by give_up_without_servers()
  std::function<void()> on_look_;
  StatusNotes* notes_ = nullptr;
  std::atomic<bool> broken_off_ = false;
  bool looking_ = false;
  bool finished_ = false;
};

}  // namespace dpwa::kvstore
