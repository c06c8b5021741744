#include "adapters/launch/meeting.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "adapters/collective/engine/error.h"
#include "adapters/launch/rendezvous.h"
#include "adapters/launch/sockets.h"
#include "dpwa/base/resolve_host.h"
#include "dpwa/base/threads.h"
#include "dpwa/base/wait_lines.h"
#include "dpwa/config/resolve.h"
#include "dpwa/launch/nodes.h"
#include "dpwa/log/log.h"

namespace dpwa::launch {
namespace {

using SteadyClock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds between_looks(10);
constexpr milliseconds between_look_ups(1000);  // of a host name
constexpr milliseconds longest_farewell(5000);

struct Deadline {
  SteadyClock::time_point end;
  milliseconds left() const {
    return std::max(milliseconds(1),
                    std::chrono::duration_cast<milliseconds>(end - SteadyClock::now()));
  }
  bool passed() const { return SteadyClock::now() >= end; }
};

// Tells a person who starts the processes by hand what this one waits for.
class Waiting {
 public:
  explicit Waiting(const LaunchPlace& place, milliseconds patience)
      : where_(place.meeting_host + ":" + std::to_string(place.meeting_port)),
        patience_(patience) {}

  const std::string& where() const { return where_; }
  // Some times a second. `what` gives the words when they are needed.
  template <typename What>
  void look(const What& what) {
    const auto now = SteadyClock::now();
    if (!lines_.due(began_, now)) return;
    log(LogLevel::info, "launch",
        "waiting for " + what() + ", for " + words_for_wait(began_, began_ + patience_, now));
  }

 private:
  const std::string where_;
  const milliseconds patience_;
  const SteadyClock::time_point began_ = SteadyClock::now();
  WaitLines lines_;
};

// Waits for a host that gets its name, or its place in the name service, while it starts.
std::vector<std::string> await_addresses(const std::string& host, int rank,
                                         const Deadline& deadline, Waiting& waiting) {
  while (true) {
    const Resolved resolved = resolve_host(host);
    if (!resolved.addresses.empty()) return resolved.addresses;
    const std::string problem = "no address is known for '" + host + "' (" + resolved.error + ")";
    if (deadline.passed()) throw std::runtime_error(problem);
    waiting.look([&] { return "the host of rank " + std::to_string(rank) + ": " + problem; });
    std::this_thread::sleep_for(std::min(between_look_ups, deadline.left()));
  }
}

// Where rank 0 hosts the meeting: at the address of its host name. Many hosts resolve their own
// name to a loopback address, which the other hosts cannot reach.
std::string listening_address(const LaunchPlace& place, const std::string& address) {
  const std::string& host = place.meeting_host;
  const bool by_name = !is_numeric_host(host);
  const bool for_others = !place.one_host && host != "localhost";
  return by_name && for_others && config::is_loopback(address) ? "0.0.0.0" : address;
}

struct MeetingPoint {
  Rendezvous store;
  std::string address;  // numeric, as this process reaches it
};

// Addresses of a name that has several are tried in turn.
MeetingPoint host_meeting(const LaunchPlace& place, const std::vector<std::string>& addresses,
                          const Deadline& deadline) {
  for (std::size_t i = 0;; ++i) {
    const std::string address = listening_address(place, addresses[i]);
    try {
      return {Rendezvous::listen(address, deadline.left(), place.meeting_port), address};
    } catch (const collective::CollectiveError&) {
      if (i + 1 == addresses.size()) throw;
    }
  }
}

// The name is resolved again while nobody answers: the host may have moved.
MeetingPoint come_to_meeting(const LaunchPlace& place, const Deadline& deadline, Waiting& waiting) {
  const std::string whom = place.hosted ? place.launcher : "rank 0";
  while (true) {
    const auto addresses = await_addresses(place.meeting_host, 0, deadline, waiting);
    for (const std::string& address : addresses) {
      try {
        await_listener(address, place.meeting_port, std::min(between_look_ups, deadline.left()));
        const auto silent = [&] {
          waiting.look([&] {
            return whom + " at " + waiting.where() +
                   ": what listens there does not answer as a meeting point";
          });
        };
        return {Rendezvous::connect(address, place.meeting_port, deadline.left(), silent), address};
      } catch (const std::system_error& error) {
        if (deadline.passed()) throw;
        waiting.look([&] { return whom + " at " + waiting.where() + ": " + error.what(); });
      }
    }
  }
}

MeetingPoint reach(const LaunchPlace& place, const Deadline& deadline, Waiting& waiting) {
  try {
    if (place.rank != 0 || place.hosted) return come_to_meeting(place, deadline, waiting);
    const auto addresses = await_addresses(place.meeting_host, 0, deadline, waiting);
    return host_meeting(place, addresses, deadline);
  } catch (const collective::CollectiveError& error) {
    const bool hosts = place.rank == 0 && !place.hosted;
    throw std::runtime_error(error.reason() +
                             (hosts ? " (rank 0 listens there: is there another?)" : ""));
  }
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
  std::optional<std::string> await_all(const Deadline& deadline, milliseconds patience,
                                       Waiting& waiting) {
    while (!store_.check({prefix_ + "outcome"})) {
      if (deadline.passed())
        say("not come within " + std::to_string(patience.count()) + " ms: rank " + missing());
      waiting.look([&] { return "rank " + missing() + ", at " + waiting.where(); });
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

  std::string missing() {
    std::string ranks;
    for (int rank = 0; rank < size_; ++rank) {
      if (!store_.check({rank_key(rank)}))
        ranks.append(ranks.empty() ? "" : ", ").append(std::to_string(rank));
    }
    return ranks;
  }

  c10d::Store& store_;
  int size_;
  std::string prefix_;
};

std::vector<NodeEntry> meet_others(const LaunchPlace& place, const std::string& cluster,
                                   const OwnEndpoint& own, milliseconds patience) {
  const Deadline deadline{SteadyClock::now() + patience};
  Waiting waiting(place, patience);
  MeetingPoint point = reach(place, deadline, waiting);
  const std::string terms =
      "cluster '" + cluster + "' of " + std::to_string(place.size) + " processes";
  std::optional<std::string> problem;
  std::vector<Introduction> introductions;
  try {
    const ErrorsOnly quiet;
    Board board(*point.store.store(), place);
    board.arrive(place.rank, terms, introduction_of(own, point.address));
    problem = board.await_all(deadline, patience, waiting);
    if (!problem) introductions = board.introductions();
    if (!place.hosted) point.store.leave(board.present() - 1, longest_farewell);
  } catch (const c10::Error& error) {
    if (point.store.hosts()) throw;
    throw std::runtime_error(
        (place.hosted ? "the agent of " + place.launcher : "rank 0") +
        " has ended: " + collective::plain_reason(error.what_without_backtrace()));
  }
  if (problem) throw std::runtime_error(*problem);
  for (int rank = 0; rank < place.size; ++rank)
    await_addresses(introductions[static_cast<std::size_t>(rank)].host, rank, deadline, waiting);
  return settle(introductions);
}

}  // namespace

std::vector<NodeEntry> meet(const LaunchPlace& place, const std::string& cluster,
                            const OwnEndpoint& own) {
  return meet_within(std::chrono::minutes(5), place, cluster, own);
}

std::vector<NodeEntry> meet_within(milliseconds patience, const LaunchPlace& place,
                                   const std::string& cluster, const OwnEndpoint& own) {
  const std::string where = place.meeting_host + ":" + std::to_string(place.meeting_port);
  if (place.size == 1) return settle({introduction_of(own, "127.0.0.1")});
  try {
    return meet_others(place, cluster, own, patience);
  } catch (const std::exception& error) {
    throw std::runtime_error("the processes of " + place.launcher + " do not meet at " + where +
                             ": " + collective::plain_reason(error.what()));
  }
}

}  // namespace dpwa::launch
