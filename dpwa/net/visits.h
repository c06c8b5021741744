#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "dpwa/base/time.h"
#include "dpwa/engine/pull_engine.h"
#include "dpwa/net/greetings.h"
#include "dpwa/net/io_thread.h"
#include "dpwa/net/peer_address.h"
#include "dpwa/net/seeds.h"
#include "dpwa/rules/member.h"

namespace dpwa {

struct LocalProcess;
class PeerChannel;
class PeerChannels;

// The exchanges of membership beside the pulls, each over a connection of its own. Twice a second
// the membership names nodes to ask, and the trainer may name more. Tx thread only.
class Visits {
 public:
  // `engine` is told of peers that were reached, at times of `now`.
  Visits(boost::asio::io_context& io, LocalProcess& local, PeerChannels& channels,
         PullEngine& engine, SeedPlaces seeds, TimeSource now);

  // Lets time pass for the membership, probes members, and now and then visits seeds where nobody
  // is known to be, so that clusters that began apart meet. Until stop().
  void begin();
  // Exchanges membership with the node at each address, all at once and each under `timeout`.
  // `all`: until every part of their table is known. The answers go to `work`.
  void visit_all(const Greetings::Work& work, const std::vector<PeerAddress>& addresses, bool all,
                 Duration timeout);
  void stop();  // ends the exchanges under way

 private:
  boost::asio::awaitable<void> run();
  void begin_probes();
  void begin_seed_visits();
  boost::asio::awaitable<void> visit_seed(PeerAddress address);
  boost::asio::awaitable<void> probe(MemberClaim member);
  boost::asio::awaitable<void> visit(PeerAddress address, bool all, Duration timeout,
                                     Greeted& result);
  boost::asio::awaitable<void> visit_for(Greetings::Work work, PeerAddress address, bool all,
                                         Duration timeout, std::size_t index);

  net::IoThread thread_;
  boost::asio::io_context& io_;
  LocalProcess& local_;
  PeerChannels& channels_;
  PullEngine& engine_;
  const SeedPlaces seeds_;
  const TimeSource now_;
  boost::asio::steady_timer timer_;
  std::vector<PeerChannel*> under_way_;
  std::set<std::string> probed_;  // by name: likewise
  unsigned seed_visits_ = 0;
  TimePoint next_seed_visit_ = TimePoint::min();
  std::size_t next_seed_ = 0;
  bool stopped_ = false;
};

}  // namespace dpwa
