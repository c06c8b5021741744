#include "adapters/launch/meeting.h"

#include <netdb.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <thread>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "adapters/collective/engine/error.h"
#include "adapters/collective/engine/rendezvous.h"
#include "adapters/collective/engine/sockets.h"
#include "dpwa/base/threads.h"
#include "dpwa/config/resolve.h"
#include "dpwa/launch/nodes.h"
#include "dpwa/net/free_ports.h"

namespace dpwa::launch {
namespace {

using collective::Rendezvous;
using SteadyClock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds between_looks(10);
constexpr milliseconds longest_farewell(5000);

struct Deadline {
  SteadyClock::time_point end;
  milliseconds left() const {
    return std::max(milliseconds(1),
                    std::chrono::duration_cast<milliseconds>(end - SteadyClock::now()));
  }
  bool passed() const { return SteadyClock::now() >= end; }
};

bool has_address(const std::string& host) {
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), nullptr, nullptr, &found) != 0) return false;
  freeaddrinfo(found);
  return true;
}

void await_name(const std::string& host, const Deadline& deadline) {
  while (!has_address(host)) {
    if (deadline.passed()) throw std::runtime_error("no address is known for '" + host + "'");
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
}

// Where rank 0 hosts the meeting: at the address of its host name. Many hosts resolve their own
// name to a loopback address, which the other hosts cannot reach.
std::string listening_host(const LaunchPlace& place) {
  const std::string& host = place.meeting_host;
  if (place.one_host || host == "localhost") return host;
  config::Resolver resolver;
  const auto& addresses = resolver.resolve(host).addresses;
  const bool by_name = std::ranges::find(addresses, host) == addresses.end();
  const bool loopback = !addresses.empty() && config::is_loopback(addresses.front());
  return by_name && loopback ? "0.0.0.0" : host;
}

struct MeetingPoint {
  Rendezvous store;
  std::string address;  // numeric, as this process reaches it
};

MeetingPoint reach(const LaunchPlace& place, const Deadline& deadline) {
  try {
    if (place.rank == 0 && !place.hosted) {
      const std::string host = listening_host(place);
      return {Rendezvous::listen(host, deadline.left(), place.meeting_port), host};
    }
    std::string address =
        collective::await_listener(place.meeting_host, place.meeting_port, deadline.left());
    auto store = Rendezvous::connect(address, place.meeting_port, deadline.left());
    return {std::move(store), std::move(address)};
  } catch (const collective::CollectiveError& error) {
    throw std::runtime_error(error.reason());
  }
}

Introduction introduction_of(const LaunchPlace& place, const MeetingOptions& options,
                             const std::string& meeting_point) {
  Introduction introduction;
  introduction.host_given = !options.host.empty();
  introduction.host =
      introduction.host_given ? options.host : collective::address_towards(place.meeting_host);
  introduction.bind = options.bind;
  const int wanted = options.port + place.local_rank;
  if (options.port != 0 && wanted > 65535)
    throw std::runtime_error("DPWA_PORT " + std::to_string(options.port) + " and local rank " +
                             std::to_string(place.local_rank) + " do not give a valid port");
  introduction.port =
      options.port == 0 ? net::free_ports(1).front() : static_cast<std::uint16_t>(wanted);
  introduction.meeting_point = meeting_point;
  introduction.processors = usable_processors();
  return introduction;
}

// The keys of one meeting.
class Board {
 public:
  Board(c10d::Store& store, const LaunchPlace& place) : store_(store), size_(place.size) {
    prefix_ = "dpwa/launch/" + place.run + "/";
    if (!place.hosted) return;
    // The launcher's store outlives a meeting: the next one of this run is the next for each rank.
    prefix_ += std::to_string(place.size) + "/";
    prefix_ += std::to_string(store_.add(rank_key(place.rank) + "/meetings", 1)) + "/";
  }

  void arrive(int rank, const std::string& terms, const Introduction& introduction) {
    store_.add(prefix_ + "present", 1);
    const std::string agreed = store_.compareSet(prefix_ + "terms", "", terms);
    if (agreed != terms) {
      say("rank " + std::to_string(rank) + " came for " + terms + ", the others for " + agreed);
    } else if (store_.add(rank_key(rank) + "/came", 1) > 1) {
      say("two processes joined as rank " + std::to_string(rank));
    } else {
      store_.set(rank_key(rank), to_text(introduction));
      if (store_.add(prefix_ + "arrived", 1) == size_) say(all_well);
    }
  }

  // The problem; none: all have come.
  std::optional<std::string> await_all(const Deadline& deadline, milliseconds patience) {
    while (!store_.check({prefix_ + "outcome"})) {
      if (deadline.passed()) say(missing(patience));
      std::this_thread::sleep_for(between_looks);
    }
    const std::string outcome = store_.get_to_str(prefix_ + "outcome");
    return outcome == all_well ? std::nullopt : std::optional(outcome);
  }

  // The number of processes that have come, for any reason.
  int present() { return static_cast<int>(store_.add(prefix_ + "present", 0)); }

  std::vector<Introduction> introductions() {
    std::vector<Introduction> all;
    for (int rank = 0; rank < size_; ++rank)
      all.push_back(introduction_from(store_.get_to_str(rank_key(rank))));
    return all;
  }

 private:
  static constexpr const char* all_well = "ok";

  std::string rank_key(int rank) const { return prefix_ + "rank/" + std::to_string(rank); }

  // The first word stands.
  void say(const std::string& outcome) { store_.compareSet(prefix_ + "outcome", "", outcome); }

  std::string missing(milliseconds patience) {
    std::string ranks;
    for (int rank = 0; rank < size_; ++rank) {
      if (!store_.check({rank_key(rank)}))
        ranks.append(ranks.empty() ? "" : ", ").append(std::to_string(rank));
    }
    return "not come within " + std::to_string(patience.count()) + " ms: rank " + ranks;
  }

  c10d::Store& store_;
  int size_;
  std::string prefix_;
};

std::vector<NodeEntry> meet_others(const LaunchPlace& place, const MeetingOptions& options,
                                   const Deadline& deadline) {
  if (place.named_late) await_name(place.meeting_host, deadline);
  MeetingPoint point = reach(place, deadline);
  Board board(*point.store.store(), place);
  const std::string terms =
      "cluster '" + options.cluster + "' of " + std::to_string(place.size) + " processes";
  board.arrive(place.rank, terms, introduction_of(place, options, point.address));
  const auto problem = board.await_all(deadline, options.patience);
  std::vector<Introduction> introductions;
  if (!problem) introductions = board.introductions();
  if (!place.hosted) point.store.leave(board.present() - 1, longest_farewell);
  if (problem) throw std::runtime_error(*problem);
  return settle(introductions);
}

}  // namespace

std::vector<NodeEntry> meet(const LaunchPlace& place, const MeetingOptions& options) {
  const std::string where = place.meeting_host + ":" + std::to_string(place.meeting_port);
  if (place.size == 1) {
    LaunchPlace alone = place;
    alone.meeting_host = "127.0.0.1";
    return settle({introduction_of(alone, options, alone.meeting_host)});
  }
  try {
    return meet_others(place, options, {SteadyClock::now() + options.patience});
  } catch (const std::exception& error) {
    throw std::runtime_error("the processes of " + place.launcher + " do not meet at " + where +
                             ": " + collective::plain_reason(error.what()));
  }
}

}  // namespace dpwa::launch
