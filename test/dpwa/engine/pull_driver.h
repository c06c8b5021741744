#pragma once

#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "dpwa/engine/pull_engine.h"

// How tests drive a PullEngine, in the place of the thread with the sockets: step by step with
// PullDriver, or a whole round at one moment with run_round().

namespace dpwa::test {

inline Progress progress(std::uint64_t version, double clock = 1) {
  Progress progress;
  progress.version = version;
  progress.lineage = 5;
  progress.clock = clock;
  return progress;
}

inline RoundSpec of_peer(PeerId peer, const Exchange& exchange = pull_and_blend) {
  return round_with(peer, exchange, PullOptions{}.timeout);
}

// Options that act on no distance, except where a test chooses so.
inline PullEngineOptions measuring(DistancePolicy policy = DistancePolicy::warn) {
  PullEngineOptions options;
  options.firewall.distance = policy;
  return options;
}

// Of all others of a cluster, in the order of their indices.
inline std::vector<std::string> peer_names(std::size_t self, std::size_t nodes) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < nodes; ++i) {
    if (i != self) names.push_back("w" + std::to_string(i));
  }
  return names;
}

// The index of a peer among all nodes of a cluster, where each node counts the others in order.
inline std::size_t node_of(std::size_t self, PeerId peer) {
  return peer < self ? peer : std::size_t{peer} + 1;
}

// What comes of an ask to a peer that has published this. A version that is known is not sent.
inline Answer answer_of(PullEngine& engine, const PullEngine::Ask& ask, const Progress& theirs,
                        const Progress& own) {
  Answer answer;
  answer.incarnation = 1;
  answer.progress = theirs;
  const bool known = ask.known_incarnation == 1 && ask.known_version == theirs.version;
  answer.failure = known ? PeerFailure::unchanged : engine.head(theirs, own.lineage);
  if (!answer.failure) engine.landed(answer, {}, own);
  return answer;
}

// A whole round that takes no time. `progress_of(ask)` is that of the peer that is asked.
template <typename ProgressOf>
Arrival run_round(PullEngine& engine, const RoundSpec& spec, const Progress& own, TimePoint now,
                  ProgressOf progress_of) {
  engine.begin(spec);
  while (true) {
    PullEngine::Action action = engine.next(own.clock, now);
    if (auto* arrival = std::get_if<Arrival>(&action)) return std::move(*arrival);
    const auto& ask = std::get<PullEngine::Ask>(action);
    engine.settle(answer_of(engine, ask, progress_of(ask), own), false, false, now);
  }
}

// An engine, and what a test does with it in each phase of a round.
struct PullDriver {
  explicit PullDriver(const std::vector<std::string>& names = {"w1"},
                      const PullEngineOptions& options = measuring())
      : engine(options, names) {}

  PullEngine::Action next() { return engine.next(own.clock, now); }
  // The next request; none: the round is over, and `arrival` is its result.
  std::optional<PullEngine::Ask> ask() {
    auto action = next();
    if (const auto* asked = std::get_if<PullEngine::Ask>(&action)) return *asked;
    arrival = std::get<Arrival>(action);
    return std::nullopt;
  }
  // The current peer sends a snapshot, which lands `distance` away unless the head is refused.
  PullEngine::Settled sends(const Progress& theirs, double distance = 0, std::uint64_t process = 1,
                            bool may_overflow = false) {
    Answer answer;
    answer.incarnation = process;
    answer.progress = theirs;
    answer.keeps_ledger = keeps_ledger;
    answer.failure = engine.head(theirs, own.lineage);
    if (!answer.failure) {
      answer.bytes = 64;
      const auto scale = engine.landed(answer, {distance * distance, std::isfinite(distance)}, own);
      may_overflow = scale && may_overflow;
    }
    return engine.settle(answer, false, may_overflow, now);
  }
  PullEngine::Settled fails(PeerFailure failure, bool late = false, std::uint64_t process = 0,
                            std::uint64_t bytes = 0) {
    Answer answer;
    answer.bytes = bytes;
    answer.failure = failure;
    answer.incarnation = process;
    return engine.settle(answer, late, false, now);
  }
  // A round with one peer that sends this.
  Outcome round(const RoundSpec& spec, const Progress& theirs, double distance = 0) {
    engine.begin(spec);
    while (ask()) sends(theirs, distance);
    return arrival.outcome;
  }
  std::vector<std::string> lines(LogEntry::Weight weight) {
    std::vector<std::string> lines;
    for (const LogEntry& entry : engine.take_log()) {
      if (entry.weight == weight) lines.push_back(entry.text);
    }
    return lines;
  }

  PullEngine engine;
  TimePoint now{std::chrono::hours(1)};
  Progress own = progress(1);
  bool keeps_ledger = false;  // the peers do
  Arrival arrival;
};

}  // namespace dpwa::test
