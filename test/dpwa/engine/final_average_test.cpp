#include "dpwa/engine/final_average.h"

#include <doctest/doctest.h>

#include <chrono>
#include <cmath>
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
  double value = 1;                 // of every number of its model
  std::optional<double> then = {};  // when it is read again
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
  double value = 1;       // of every number of the own model
  std::string folded;     // names, in order; since the average was begun anew
  std::string told;       // peers that were asked for the last time
  std::string confirmed;  // peers that were told that nothing more is needed
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
    } else if (const auto* confirm = std::get_if<FinalAverage::Confirm>(&action)) {
      confirmed += peers_[confirm->peer].name + ' ';
    } else if (const auto* sketch = std::get_if<FinalAverage::Sketch>(&action)) {
      ModelSketch all;
      all.sums.fill((sketch->own ? value : last_value_) / 2);  // its norm is 8 times that
      average.sketched(all);
    } else if (const auto* fold = std::get_if<FinalAverage::Fold>(&action)) {
      if (fold->count == 1) folded.clear();
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
    const bool again = read_.contains(peer.name);
    last_ = peer.name;
    last_value_ = again ? peer.then.value_or(peer.value) : peer.value;
    const bool lands = !peer.hangs && !peer.busy;
    if (lands) read_.insert(peer.name);
    if (pull.last) told += peer.name + ' ';
    average.pulled(lands ? std::optional(progress) : std::nullopt, peer.busy,
                   8 * std::abs(last_value_ - value), now);
  }
  std::vector<PeerAnswer> answers() const {
    std::vector<PeerAnswer> result;
    for (const Peer& peer : peers_) {
      PeerAnswer answer;
      answer.asked = answer.vouched_for = true;
      answer.listed = peer.of_file;
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
  double last_value_ = 0;
  std::set<std::string> read_;
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
  CHECK(late.now - begun < 10250ms);
  CHECK(late.greetings < 70);  // a connection to each node every time
  CHECK(late.lines.back() ==
        "final average over 2 of 3 nodes; still training after 10 s (gossip.finish_wait_ms): 'w3'");
  Ending gone({{"w2", 1s}, {"w3", 24h, 100ms}});
  CHECK(gone.run().participants == 2);
  CHECK(gone.lines.back() == "final average over 2 of 3 nodes; absent: 'w3'");
  CHECK(gone.now - begun < 1700ms);
}

TEST_CASE("weights of another lineage are left out of the final average") {
  Peer other{"w2"};
  other.lineage = 8;
  Ending node({other, {"w3"}});
  CHECK(node.run().participants == 2);
  CHECK(node.folded == "w1 w3 ");
  CHECK(node.lines.back() == "final average over 2 of 3 nodes; without a usable model: 'w2'");
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
  CHECK(slow.now - begun < 30250ms);
  CHECK(slow.greetings < 150);
  CHECK(slow.lines.back() ==
        "serves its final parameters to 'w2', which did not take them under the address that it "
        "has here, for at most 30 s (gossip.finish_wait_ms)");
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
  CHECK(node.lines.back() ==
        "final average over 1 of 2 nodes; absent: 'w2'; gossip.min_nodes requires 2");
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

TEST_CASE("each model is read once, and its node told that this was enough") {
  Ending node({{"w2"}, {"w3"}});
  CHECK(node.run().averaged);
  CHECK(node.pulls == 2);
  CHECK(node.told.empty());
  CHECK(node.confirmed == "w2 w3 ");
}

TEST_CASE("where no distance acts, each model is asked for the last time at once") {
  Ending node({{"w2"}, {.name = "w3", .value = 1e6}});
  node.options.leaves_out = false;
  CHECK(node.run().participants == 3);
  CHECK(node.pulls == 2);
  CHECK(node.told == "w2 w3 ");
  CHECK(node.confirmed.empty());
}

TEST_CASE("every node leaves the same model out of the final average, also that node itself") {
  const double values[] = {1, 1.001, 1.002, 2};
  for (std::size_t self = 0; self < 4; ++self) {
    CAPTURE(self);
    std::vector<Peer> peers;
    for (std::size_t i = 0; i < 4; ++i) {
      if (i != self) peers.push_back({.name = "w" + std::to_string(i + 1), .value = values[i]});
    }
    Ending node(peers, self);
    node.value = values[self];
    const FinishReport report = node.run();
    CHECK(node.folded == "w1 w2 w3 ");
    CHECK(report.averaged);
    CHECK(report.participants == 3);
    REQUIRE(node.lines.size() == 2);
    const std::string whose = self == 3 ? "this node" : "'w4'";
    CHECK(node.lines[0] == "the final average leaves out the model of " + whose +
                               ": its distance is 7.99, where the bound is 0.4");
    CHECK(node.lines[1] == "final average over 3 of 4 nodes");
  }
}

TEST_CASE("nodes whose models are left out, or of another lineage, are not asked again") {
  Ending node({{"w2"}, {.name = "w3", .value = 9}, {.name = "w4", .lineage = 3}});
  node.value = 1.001;
  node.run();
  CHECK(node.folded == "w1 w2 ");
  CHECK(node.confirmed == "w3 w4 ");
  CHECK(node.told == "w2 ");
}

TEST_CASE("a node that sends another model when it is asked again is left out") {
  Ending node({{"w2"}, {.name = "w3", .value = 9}, {.name = "w4", .value = 1.002, .then = 1.003}});
  node.value = 1.001;
  CHECK(node.run().participants == 2);
  CHECK(node.folded == "w1 w2 ");
  CHECK(node.lines.back() == "final average over 2 of 4 nodes; without a usable model: 'w4'");
}

TEST_CASE("two models of which one is several times as large as the other are not averaged") {
  Ending node({{.name = "w2", .value = 5}});
  const FinishReport report = node.run();
  CHECK_FALSE(report.averaged);
  CHECK(node.folded == "w1 ");
  CHECK(node.lines.back() == "final average over 1 of 2 nodes");
}

TEST_CASE("a node that waits for others to end says for whom, and how long") {
  Ending node({{"w2", 5s}, {"w3", 1s}, {"w4", 15s}});
  node.options.finish_wait = 20s;
  node.run();
  CHECK(node.lines ==
        std::vector<std::string>{
            "waits for the end of 'w2', 'w4', for at most 20 s (gossip.finish_wait_ms)",
            "waits for the end of 'w4', for at most 20 s (gossip.finish_wait_ms)",
            "final average over 4 of 4 nodes"});
}
