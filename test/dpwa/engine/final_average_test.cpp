#include "dpwa/engine/final_average.h"

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

using namespace std::chrono_literals;
using namespace dpwa;

namespace {

constexpr TimePoint begun{1h};

struct Peer {
  std::string name;
  Duration finishes{};  // after `begun`
  Duration gone = 24h;  // refuses connections from then on
  bool busy = false;    // declines every pull
  bool hangs = false;   // and never answers one
  bool of_file = true;
  std::uint64_t lineage = 7;
};

// One node at its end among others that are told here, on a virtual clock.
class Ending {
 public:
  explicit Ending(std::vector<Peer> peers, std::size_t position = 0) : peers_(std::move(peers)) {
    options.position = position;
    options.name = "w" + std::to_string(position + 1);
    options.timeout = 500ms;
    options.finish_wait = 10s;
    options.lineage = 7;
    for (const Peer& peer : peers_) options.file_peers += peer.of_file ? 1 : 0;
  }

  FinishReport run() {
    FinalAverage average(options, begun, alone_since);
    while (true) {
      const auto action = average.next(now, served);
      for (const TrainerLine& line : average.take_lines()) lines.push_back(line.text);
      if (const auto* done = std::get_if<FinalAverage::Done>(&action)) return done->report;
      perform(average, action);
    }
  }

  FinalAverageOptions options;
  std::optional<TimePoint> alone_since;
  TimePoint now = begun;
  TimePoint buffers_free = begun;  // from when on
  std::set<std::string> served{"w1", "w2", "w3", "w4", "x", "y"};
  std::vector<std::string> lines;
  std::string folded;  // names, in order
  std::size_t pulls = 0;
  Duration hung{};
  std::size_t greetings = 0;

 private:
  void perform(FinalAverage& average, const FinalAverage::Action& action) {
    if (std::holds_alternative<FinalAverage::Publish>(action)) {
      const bool done = now >= buffers_free;
      if (!done) now += 1s;  // as long as a publish waits for a buffer
      average.published(done, now);
    } else if (std::holds_alternative<FinalAverage::Greet>(action)) {
      ++greetings;
      average.greeted(answers(), now);
    } else if (std::holds_alternative<FinalAverage::TakeBuffer>(action)) {
      average.took_buffer(now >= buffers_free, now);
    } else if (const auto* pull = std::get_if<FinalAverage::Pull>(&action)) {
      answer_pull(average, *pull);
    } else if (const auto* fold = std::get_if<FinalAverage::Fold>(&action)) {
      folded += (fold->own ? options.name : last_) + ' ';
    } else if (const auto* replace = std::get_if<FinalAverage::Replace>(&action)) {
      average.replaced(replace->measures ? 3 : -1);
    } else if (const auto* wait = std::get_if<FinalAverage::Wait>(&action)) {
      now += wait->time;
    }
  }
  void answer_pull(FinalAverage& average, const FinalAverage::Pull& pull) {
    const Peer& peer = peers_[pull.peer];
    ++pulls;
    if (peer.hangs) {
      hung += pull.timeout;
      now += pull.timeout;
    }
    Progress progress;
    progress.final = true;
    progress.lineage = peer.lineage;
    last_ = peer.name;
    const bool lands = !peer.hangs && !peer.busy;
    average.pulled(lands ? std::optional(progress) : std::nullopt, peer.busy, now);
  }
  std::vector<PeerAnswer> answers() const {
    std::vector<PeerAnswer> result;
    for (const Peer& peer : peers_) {
      PeerAnswer answer;
      answer.asked = answer.vouched_for = true;
      answer.seed = peer.of_file;
      answer.name = peer.name;
      answer.joining = false;
      answer.finished = now - begun >= peer.finishes;
      if (now - begun >= peer.gone) answer.failure = PeerFailure::unreachable;
      result.push_back(answer);
    }
    return result;
  }

  std::vector<Peer> peers_;
  std::string last_;
};

}  // namespace

TEST_CASE("every node folds the same models in the order of their names") {
  for (std::size_t self = 0; self < 4; ++self) {
    std::vector<Peer> peers;
    for (std::size_t i = 0; i < 4; ++i)
      if (i != self) peers.push_back({"w" + std::to_string(i + 1), 2s});
    Ending node(peers, self);
    const FinishReport report = node.run();
    CHECK(node.folded == "w1 w2 w3 w4 ");
    CHECK(report.averaged);
    CHECK(report.participants == 4);
    CHECK(report.distance_to_average == 3);
    CHECK(node.lines == std::vector<std::string>{"final average over 4 of 4 nodes"});
  }
}

TEST_CASE("nodes whose files have another order fold the same models in the same order") {
  Ending before({{"w2"}, {"w3"}});
  before.run();
  Ending after({{"w3"}, {"w2"}}, 2);  // a reload has moved this node to the end
  after.options.name = "w1";
  after.run();
  CHECK(before.folded == "w1 w2 w3 ");
  CHECK(after.folded == "w1 w2 w3 ");
}

TEST_CASE("a node that is not of the file is folded in its place among the names") {
  Ending node({{"w2"}, {"w3"}, {"a"}});
  node.options.file_peers = 2;
  node.run();
  CHECK(node.folded == "a w1 w2 w3 ");
}

TEST_CASE("a node that does not finish is waited for, and one that is gone only for a moment") {
  Ending late({{"w2", 2s}, {"w3", 24h}});
  CHECK(late.run().participants == 2);
  CHECK(late.now - begun >= 10s);
  CHECK(late.now - begun < 10100ms);
  CHECK(late.lines.back() == "final average over 2 of 3 nodes");
  Ending gone({{"w2", 1s}, {"w3", 24h, 100ms}});
  CHECK(gone.run().participants == 2);
  CHECK(gone.now - begun < 1700ms);
}

TEST_CASE("weights of another lineage are left out of the final average") {
  Peer other{"w2"};
  other.lineage = 8;
  Ending node({other, {"w3"}});
  CHECK(node.run().participants == 2);
  CHECK(node.folded == "w1 w3 ");
}

TEST_CASE("a peer that has finished and is busy for ever does not hold up the final average") {
  Peer busy{"w2"};
  busy.busy = true;
  Ending node({busy});
  node.options.timeout = 200ms;
  node.options.finish_wait = 400ms;
  CHECK_FALSE(node.run().averaged);
  CHECK(node.pulls > 1);
  CHECK(node.pulls < 15);  // one in 25 ms at most, for 200 ms
  CHECK(node.now - begun < 300ms);
}

TEST_CASE("peers that hang in the final average share one bound among them") {
  std::vector<Peer> peers;
  for (int i = 2; i <= 4; ++i) {
    peers.push_back({"w" + std::to_string(i)});
    peers.back().hangs = true;
  }
  Ending node(peers);
  node.options.timeout = 50ms;
  node.options.finish_wait = 800ms;
  CHECK(node.run().participants == 1);
  CHECK(node.pulls == 3);
  CHECK(node.hung <= 800ms);
}

TEST_CASE("after three joiners that give nothing no more of those that joined are asked") {
  std::vector<Peer> peers{{"w2"}};
  for (int i = 0; i < 20; ++i) {
    peers.push_back({"x" + std::to_string(i)});
    peers.back().hangs = true;
    peers.back().of_file = false;
  }
  Ending node(peers);
  CHECK(node.run().participants == 2);
  CHECK(node.pulls == 4);
}

TEST_CASE("the final average waits for a snapshot buffer, and says so when none becomes free") {
  Ending held({{"w2"}});
  held.buffers_free = begun + 3s;
  CHECK(held.run().averaged);
  Ending never({{"w2"}});
  never.buffers_free = begun + 1h;
  CHECK_FALSE(never.run().averaged);
  CHECK(never.lines.back() ==
        "final average over 1 of 2 nodes: every snapshot buffer is held by a reader");
  CHECK(never.now - begun < 11s);
}

TEST_CASE("a node that has averaged serves until the others have its snapshot, or are gone") {
  Ending slow({{"w2"}});
  slow.served.clear();
  slow.run();
  CHECK(slow.now - begun >= 30s);
  CHECK(slow.now - begun < 30100ms);
  Ending left({{"w2", 0s, 2s}});
  left.served.clear();
  left.run();
  CHECK(left.now - begun < 3600ms);
  Ending served({{"w2"}});
  served.run();
  CHECK(served.now == begun);
}

TEST_CASE("an average over fewer nodes than gossip.min_nodes is reported as not enough") {
  Ending node({{"w2", 24h, 0s}});
  node.options.min_nodes = 2;
  const FinishReport report = node.run();
  CHECK_FALSE(report.enough);
  CHECK(node.lines.back() == "final average over 1 of 2 nodes; gossip.min_nodes requires 2");
}

TEST_CASE("a node that ends alone says for how long, and without an average it only publishes") {
  Ending node({{"w2", 24h}});
  node.options.averages = false;
  node.alone_since = begun - 12s;
  const FinishReport report = node.run();
  CHECK_FALSE(report.averaged);
  CHECK(report.enough);
  CHECK(node.greetings == 0);
  CHECK(node.lines == std::vector<std::string>{"ends alone: no peer has answered for 12 s"});
}

TEST_CASE("a node that has become alone just before its end says so without a time") {
  Ending node({{"w2", 24h}});
  node.options.averages = false;
  node.alone_since = begun - 100ms;
  node.run();
  CHECK(node.lines == std::vector<std::string>{"ends alone: no peer answers"});
}
