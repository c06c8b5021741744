#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "dpwa/base/threads.h"
#include "dpwa/base/time.h"
#include "dpwa/kvclient/operations.h"
#include "dpwa/kvclient/server_link.h"
#include "dpwa/kvstore/compression.h"
#include "dpwa/kvstore/link_limits.h"
#include "dpwa/kvstore/slices.h"
#include "dpwa/kvstore/worker_changes.h"
#include "dpwa/kvstore/worker_engine.h"
#include "dpwa/log/log.h"
#include "dpwa/net/io_thread.h"
#include "dpwa/net/local_process.h"
#include "dpwa/net/peer_address.h"
#include "dpwa/rules/options.h"
#include "dpwa/snapshot/aligned_buffer.h"

namespace dpwa {
class Security;
}

namespace dpwa::kvclient {

struct StoreClientOptions : SocketOptions {
  std::string cluster;
  kvstore::MemberId self;
  std::vector<PeerAddress> servers;  // in the order of the cluster file
  kvstore::WorkerOptions engine;
  kvstore::CompressionOptions compression;  // of pushes
  std::shared_ptr<Security> security;       // null: none
  Duration longest_silence = kvstore::longest_silence;
};

// The terms of a push, as kvstore::Push has them.
struct PushTerms {
  std::uint64_t step = 0;
  double weight = 1;
  kvstore::Merge merge = kvstore::Merge::sum;
  bool wants_value = false;
  kvstore::Bytes optimizer{};  // encode(OptimizerOptions); empty: replaces the value
  // Memory of the size of the value. The value after the update is written there, if it is wanted,
  // and no other memory is used for it. It is written to until the outcome. Empty: see Outcome.
  std::span<std::byte> into{};
};

// The requests of one worker to all servers of the store, on a thread of its own that blocks all
// signals: a WorkerEngine and a link to each server. Calls begin work and return at once, in the
// order of the calls; wait() gives the outcome. Used by one thread, the training thread.
class StoreClient final : private LinkEvents {
 public:
  explicit StoreClient(StoreClientOptions options);
  // Ends all connections. After it no lent memory is read.
  ~StoreClient();
  StoreClient(const StoreClient&) = delete;
  StoreClient& operator=(const StoreClient&) = delete;

  // Asks to take part. Called again after an outcome with left_out.
  void join();
  // The first step to take part in; none: the servers have not taken this worker in by then. One
  // that is left out again before the call returns asks again. Throws std::runtime_error, in one
  // line, once the run is over: servers were started again and have lost what it would go on from.
  std::optional<std::uint64_t> wait_joined(TimePoint until);
  // Leaves, so that the others do not wait for this worker. Calls under way end as left out.
  // Returns when the servers know, or at `until`. join() undoes it.
  void leave(TimePoint until);
  // The last step has been made: no worker waits for this one any more.
  void finish();
  // Waits until no worker trains: pulls then give the final values. False: one did at `until`.
  // Throws as wait_joined() does.
  bool wait_end(TimePoint until);

  // Servers of this host and user read pushes in this memory instead of receiving them over TCP. It
  // is kept until the destructor. Memory that is not shared (AlignedBuffer) is ignored, and so are
  // servers on other hosts.
  void share(const AlignedBuffer& memory);
  // Whether a server reads shared memory. Known once it has answered, for example an init.
  bool uses_memory() const;

  // Called once for each key. Copies the values. `compresses`: whether pushes are compressed as
  // StoreClientOptions says.
  Ticket init(const kvstore::Key& key, const kvstore::ValueSpec& spec,
              std::span<const std::byte> values, bool compresses = true);
  // For a key that this worker has initialised. `lent` must not change until the outcome: it is
  // sent from there, unless it is compressed.
  Ticket push(const kvstore::Key& key, std::span<const std::byte> lent, PushTerms terms,
              int priority = 0);
  // With engine.own_steps: the pushes from now on are of the next step of the program. A snapshot
  // of the servers has all pushes of a step, or none.
  void begin_step();
  // The value with all pushes of steps below `clock`, as the type of the store promises.
  // `known_version`: kvstore::Pull's. `into`: as in PushTerms.
  Ticket pull(const kvstore::Key& key, std::uint64_t clock, int priority = 0,
              std::uint64_t known_version = 0, std::span<std::byte> into = {});
  // Makes another init possible after one that failed.
  void forget(const kvstore::Key& key);
  // The compression of pushes from now on. Residuals stay, but for a form that has none.
  void set_compression(const kvstore::CompressionOptions& options);
  // Fetches the optimizer states of all slices of a key; places them, one for each slice.
  Ticket ask_states(const kvstore::Key& key);
  Ticket place_states(const kvstore::Key& key, std::vector<kvstore::StateMessage> states);
  // The next barrier of the program. It is not over when this worker is left out: the worker has to
  // join().
  Ticket barrier();
  // As WorkerEngine::at.
  void at(std::uint64_t clock, bool waiting);

  // Once for each ticket that is not left to the destructor; none: not over by then. Throws as
  // wait_joined() does.
  std::optional<Outcome> wait(Ticket ticket, TimePoint until);

  // Why a server does not take this worker in, and for how long it has said so; none: no server has
  // lately, or since the last time that this worker was taken in.
  struct Refusal {
    enum class Reason : std::uint8_t {
      settings,    // those of the cluster file differ
      name_taken,  // another process takes part under this name, or the run cannot go on
      rejected,    // the connection: by its cluster, its name, its version or its security mode
    };
    Reason reason = Reason::settings;
    std::string problem;
    TimePoint first{};
    TimePoint last{};

    // Whether asking again is of no use. A name that another process has is free once that process
    // has been silent for kvstore.lost_after_ms.
    bool is_for_good(Duration lost_after) const {
      return reason != Reason::name_taken || last - first >= 2 * lost_after;
    }
  };
  std::optional<Refusal> refusal() const;
  // Why this worker was left out the last time: "this node was silent or hung" and so on. Throws
  // std::runtime_error once the run is over.
  std::string why_left_out() const;

  // As of now.
  bool takes_part() const;
  std::vector<kvstore::WorkerEntry> members() const;  // that take part, in the order of names
  std::vector<std::string> workers() const;           // their names
  // Workers that were left out, servers that are down, and servers without a connection, for so
  // long.
  std::size_t gone(Duration silent_for) const;
  // As Epoch::left.
  std::vector<std::string> left() const;
  std::vector<std::string> problems() const;  // "server 's1': connection refused" and so on
  // To and from all servers.
  ValueTraffic traffic() const;
  // Of this process: that of the options, or a higher one (WorkerEngine::Renumbered).
  std::uint64_t incarnation() const;

 private:
  struct Held {
    kvstore::ValueSpec spec;
    std::vector<kvstore::Slice> slices;
    bool compresses = true;                        // whether pushes are compressed, if any are
    std::vector<kvstore::Compressor> compressors;  // empty when nothing is compressed
  };
  void arrived(const kvstore::MemberId& from, std::uint64_t tag, kvstore::Message message) override;
  std::span<std::byte> target_of(const kvstore::Answer& answer) override;
  std::optional<std::size_t> bytes_of(const kvstore::SliceId& slice) const override {
    return engine_.bytes_of(slice);
  }
  void written() override;
  void connected(const std::string& server) override;
  // The part of `into` for each slice; none if it is empty.
  static std::vector<std::span<std::byte>> cut(const kvstore::Key& key, const Held& held,
                                               std::span<std::byte> into);
  void post(std::function<void()> work);
  void make_calls();
  void pump_soon();
  void ask_to_join();
  void pump();
  void handle_events();
  void left_out();
  void run_over(const kvstore::WorkerEngine::RunOver& event);
  LocalProcess& introduce(std::uint64_t incarnation);
  void renumbered(std::uint64_t incarnation);
  void throw_if_over() const DPWA_REQUIRES(mutex_);
  void take_memory_back();
  void note_refusal(Refusal::Reason reason, std::string problem);
  void note_rejections();
  void forget_old_refusal(TimePoint now);
  void tell_epoch();
  void note_gone(const kvstore::Epoch& epoch, TimePoint now);
  void compress(Held& held) const;
  Ticket states(const kvstore::Key& key, std::vector<kvstore::StateMessage> messages);
  bool is_read(const kvstore::SliceId& slice, std::uint64_t step) const;
  void tick();

  const StoreClientOptions options_;
  const std::uint32_t servers_;
  std::deque<LocalProcess> local_;           // I/O thread; the last one introduces this process
  Ticket next_ticket_ = 1;                   // training thread
  std::map<kvstore::Key, Held> keys_;        // training thread
  kvstore::CompressionOptions compression_;  // training thread
  std::uint64_t barriers_ = 0;               // training thread
  boost::asio::io_context io_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  std::thread thread_;

  // I/O thread
  net::IoThread io_thread_;
  kvstore::WorkerEngine engine_;
  Operations operations_;
  std::vector<std::shared_ptr<ServerLink>> links_;
  std::vector<AlignedBuffer> shared_;
  boost::asio::steady_timer ticks_;
  bool out_ = false;  // left out, without a join() since
  bool stopped_ = false;
  bool pumps_soon_ = false;
  std::uint64_t told_epoch_ = 0;
  // The first step in an epoch whose workers the training thread has not been told yet.
  std::optional<std::uint64_t> joined_;
  LogLimiter limiter_;  // of refusals
  kvstore::WorkerChanges changes_;

  // Calls that the I/O thread has not made yet: it is woken for the first of them only.
  Mutex calls_mutex_;
  std::vector<std::function<void()>> calls_ DPWA_GUARDED_BY(calls_mutex_);

  mutable Mutex mutex_;
  std::uint64_t incarnation_ DPWA_GUARDED_BY(mutex_);
  Condition changed_;
  std::unordered_map<Ticket, Outcome> done_ DPWA_GUARDED_BY(mutex_);
  // The training thread waits for it: outcomes of others do not wake it.
  std::optional<Ticket> awaited_ DPWA_GUARDED_BY(mutex_);
  std::optional<std::uint64_t> first_step_ DPWA_GUARDED_BY(mutex_);
  bool left_out_again_ DPWA_GUARDED_BY(mutex_) = false;  // since the last join()
  bool takes_part_ DPWA_GUARDED_BY(mutex_) = false;
  bool none_trains_ DPWA_GUARDED_BY(mutex_) = false;
  bool uses_memory_ DPWA_GUARDED_BY(mutex_) = false;
  std::string over_ DPWA_GUARDED_BY(mutex_);  // why the run cannot go on; empty: it can
  std::string why_left_out_ DPWA_GUARDED_BY(mutex_);
  std::vector<kvstore::WorkerEntry> workers_ DPWA_GUARDED_BY(mutex_);
  std::vector<std::string> problems_ DPWA_GUARDED_BY(mutex_);
  std::vector<std::string> left_ DPWA_GUARDED_BY(mutex_);
  std::optional<Refusal> refusal_ DPWA_GUARDED_BY(mutex_);
  std::map<std::string, TimePoint> gone_since_ DPWA_GUARDED_BY(mutex_);
  ValueTraffic traffic_ DPWA_GUARDED_BY(mutex_);
};

}  // namespace dpwa::kvclient
