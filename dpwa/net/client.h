#pragma once

#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dpwa/base/threads.h"
#include "dpwa/engine/exchange.h"
#include "dpwa/engine/pull_engine.h"
#include "dpwa/log/log.h"
#include "dpwa/net/greetings.h"
#include "dpwa/net/io_thread.h"
#include "dpwa/net/local_node.h"
#include "dpwa/net/peer_address.h"
#include "dpwa/net/seeds.h"
#include "dpwa/rules/options.h"
#include "dpwa/snapshot/byte_range.h"
#include "dpwa/snapshot/landing.h"

namespace dpwa {

class PeerChannel;
class PeerChannels;
class Visits;
struct PullRequest;
struct PullResult;

// A round of pulls, and how its parameters land. The defaults are an ordinary gossip round over the
// whole model.
struct PullSpec : RoundSpec {
  std::optional<ByteRange> range;  // of the block, 0 if not said; none: all that is moved
  LandingMode mode = LandingMode::difference;
};

struct ClientOptions : PullEngineOptions, SocketOptions, ChunkOptions {
  BufferAllocator allocate;  // of the landing buffer
  SeedPlaces seeds;          // visited as long as the node runs; none: a file lists the nodes
  // The clock of back-offs. Deadlines keep to the steady clock.
  TimeSource now = std::chrono::steady_clock::now;
};

// The Tx side: performs what the pull engine decides. At most one pull is under way, from one peer
// at a time. The landing buffer belongs to the Tx thread from begin() until the arrival is taken,
// and to the trainer from then until its next begin(). Lives on one io_context run by one thread.
class Client {
 public:
  Client(boost::asio::io_context& io, LocalNode& local, std::vector<PeerAddress> peers,
         ClientOptions options);
  ~Client();

  // --- trainer thread
  bool begin(
      const PullSpec& spec);  // false while a pull is under way or an arrival has not been taken
  bool under_way() const;
  // The arrival of the last pull, waiting for it up to `budget`. None: it is not there yet, or no
  // pull was begun.
  std::optional<Arrival> take(Duration budget);
  const Landing& landing() const { return landing_; }
  // Greets its peers, many at once and each under `timeout`. Of the peers that only others have
  // told of, and that have not answered yet, it greets a few. One entry per PeerId: an empty one
  // for a peer that was not asked, also because the node stops.
  std::vector<Greeted> greet_all(Duration timeout);
  // Exchanges membership with the nodes at these addresses, all at once and each under `timeout`,
  // over connections of their own: to join (`all`: until every part of their table is known), or to
  // take leave. One entry per address, likewise.
  std::vector<Greeted> visit_all(const std::vector<PeerAddress>& addresses, bool all,
                                 Duration timeout);
  // Blocks until a process calls that has not called before: a node that starts. No longer than
  // `longest`, nor once the node stops.
  void wait_for_new_caller(Duration longest);
  // Those of the options at which nobody is known to be.
  std::vector<PeerAddress> unmet_seeds() const;
  // Set once most peers refuse this node because its name belongs to another node: the reason that
  // they give. Any thread.
  std::optional<std::string> evicted() const;

  // --- Tx thread
  void begin_membership();  // lets time pass for it and probes members, until stop()
  void peer_called(const std::string& name, std::uint64_t incarnation);
  const PeerTable& table() const { return engine_.table(); }
  const Firewall& firewall() const { return engine_.firewall(); }
  const PairLedger* ledger() const { return engine_.ledger(); }
  TimePoint now() const { return options_.now(); }
  bool same_host(PeerId peer) const;  // how it is pulled from
  void stop();                        // ends a pull under way; every later begin() is refused

 private:
  boost::asio::awaitable<void> run_round(PullSpec spec);
  boost::asio::awaitable<void> attempt(PullEngine::Ask ask, const PullSpec& spec);
  // Asks for the parameters and lands them in `mode`, if the engine wants them.
  boost::asio::awaitable<PullResult> pull(PeerChannel& channel, PullRequest request,
                                          LandingMode mode);
  void tell_members(const std::string& peer, const Answer& answer, bool silent);
  void hear_others();      // right before the first peer is asked: members and statements
  void take_up_members();  // peers that are new, moved, gone or back
  void write_log();
  // For the answers to a call of the trainer; null once the node stops.
  std::shared_ptr<Greetings> expect(std::size_t answers);
  boost::asio::awaitable<void> greet_some(Greetings::Work work,
                                          std::shared_ptr<std::vector<PeerId>> left,
                                          Duration timeout);
  boost::asio::awaitable<Greeted> greet(PeerId peer, Duration timeout);
  bool stopped() const;
  void deliver(Arrival arrival);
  void round_failed();  // by a defect: the round ends without a result

  boost::asio::io_context& io_;
  LocalNode& local_;
  const ClientOptions options_;

  // Tx thread only
  net::IoThread thread_;
  PullEngine engine_;
  const std::unique_ptr<PeerChannels> channels_;
  const std::unique_ptr<Visits> visits_;
  std::uint64_t members_version_ = 0;             // taken up
  std::map<std::string, std::uint64_t> callers_;  // incarnation of each peer that has called
  boost::asio::steady_timer delay_;               // before a round
  Progress compared_;  // of the own snapshot that the last landing compares with
  LogLimiter limiter_;
  LogLimiter members_limiter_;

  Landing landing_;  // handed over with the arrival
  PullSpec spec_;    // handed over with the start of its round

  mutable Mutex mutex_;
  Condition changed_;
  bool under_way_ DPWA_GUARDED_BY(mutex_) = false;
  bool stopped_ DPWA_GUARDED_BY(mutex_) = false;
  std::optional<Arrival> arrival_ DPWA_GUARDED_BY(mutex_);
  std::shared_ptr<Greetings> greetings_ DPWA_GUARDED_BY(mutex_);  // that are waited for
  bool new_caller_ DPWA_GUARDED_BY(mutex_) = false;               // since the last wait for one
  std::string evicted_ DPWA_GUARDED_BY(mutex_);                   // why; empty = not
  std::atomic<bool> is_evicted_{false};
};

}  // namespace dpwa
