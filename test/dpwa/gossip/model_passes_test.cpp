#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "dpwa/gossip/gossip_node.h"
#include "dpwa/gossip/model_passes.h"
#include "dpwa/gossip/parallel_pass.h"
#include "test/support/allocations.h"
#include "test/support/eventually.h"
#include "test/support/log_file.h"
#include "test/support/vector_cluster.h"

using namespace dpwa;

namespace {

using namespace std::chrono_literals;

// Parameters that only say what is done to them, on a device whose copies are complete when `done`,
// or which works on the last `unfinished` of them.
class FakeParameters : public Parameters {
 public:
  const Manifest& manifest() const override { return manifest_; }
  void copy_out(std::span<std::byte>) override { log += "copy; "; }
  void blend(const Landing&, double) override { log += "blend; "; }
  void blend_and_copy_out(const Landing&, double, std::span<std::byte>) override {
    log += "both; ";
  }
  bool settled() override { return done && unfinished == 0; }
  std::size_t copies_at_once() const override { return at_once; }
  std::size_t unfinished_copies() override { return done ? unfinished : 1; }
  void assign(std::span<const std::byte>) override {}

  std::string log;
  bool done = true;
  std::size_t at_once = 1;
  std::size_t unfinished = 0;

 private:
  const Manifest manifest_{
      std::vector<TensorSpec>{{"x", DType::float32, BlendRule::interpolate, {16}}}};
};

struct Publishing {
  FakeParameters parameters;
  SnapshotStore store{parameters.manifest().total_bytes(), 64, AlignedBuffer::plain};
  Landing landing{parameters.manifest(), AlignedBuffer::plain};
  ModelPasses passes{parameters, store};

  std::uint64_t version() const { return store.latest() ? store.latest()->progress().version : 0; }
  static Progress at_clock(double clock) {
    Progress progress;
    progress.clock = clock;
    return progress;
  }
};

}  // namespace

TEST_CASE_FIXTURE(Publishing, "a publish without a blend copies and gets its loss and version") {
  CHECK(std::isnan(passes.loss()));
  passes.open();
  passes.begin([] { return 4.0; }, at_clock(7));
  passes.complete();
  CHECK(parameters.log == "copy; ");
  CHECK(version() == 1);
  CHECK(store.latest()->progress().clock == 7);
  CHECK(store.latest()->progress().loss == 4);
  CHECK(passes.loss() == 4);
}

TEST_CASE_FIXTURE(Publishing,
                  "a blend before a publish fills its buffer, and only the first does") {
  passes.blend(landing, 0.5);
  passes.open();
  passes.blend(landing, 0.5);
  passes.begin([] { return 4.0; }, {});
  passes.complete();
  passes.blend(landing, 0.5);
  CHECK(parameters.log == "blend; both; blend; ");
  CHECK(version() == 1);
  passes.open();
  passes.begin([] { return 4.0; }, {});
  passes.complete();
  CHECK(parameters.log == "blend; both; blend; copy; ");
  CHECK(version() == 2);
}

TEST_CASE_FIXTURE(Publishing,
                  "with every buffer held a blend still blends and nothing is published") {
  const auto first = store.begin();
  const auto second = store.begin();
  const auto third = store.begin();
  passes.open();
  passes.blend(landing, 0.5);
  passes.begin([] { return 4.0; }, {});
  passes.complete();
  CHECK(parameters.log == "blend; ");
  CHECK(store.latest() == nullptr);
  CHECK(store.skipped() == 1);
}

TEST_CASE_FIXTURE(Publishing,
                  "a program ahead of its device publishes each step whose copy fits into one") {
  const test::LogFile file;
  parameters.at_once = 2;
  const auto publish = [&](double clock, Duration step) {
    parameters.log.clear();
    passes.open(step);
    passes.begin([clock] { return clock; }, at_clock(clock));
    return parameters.log == "copy; ";
  };
  CHECK(publish(1, 1h));
  parameters.unfinished = 1;
  CHECK_FALSE(publish(2, 1h));  // how long a copy takes is unknown
  parameters.unfinished = 0;
  CHECK(passes.publish_now(at_clock(2), TimePoint::max()));
  CHECK(publish(3, 1h));
  parameters.unfinished = 1;
  CHECK_FALSE(publish(4, 0s));  // that of a step is
  CHECK(file.count("of a step of") == 1);
  CHECK(file.has(" of a step of 3600000.00 ms: publishes each step\n"));
  CHECK_FALSE(publish(4, 1ns));
  CHECK(publish(4, 1h));
  parameters.unfinished = 2;
  CHECK_FALSE(publish(5, 1h));
  parameters.unfinished = 1;
  CHECK(passes.complete());
  CHECK(store.latest()->progress().clock == 3);
  CHECK(passes.loss() == 3);
  CHECK(publish(5, 1h));
  parameters.unfinished = 0;
  CHECK(passes.complete());
  CHECK(store.latest()->progress().clock == 5);
  CHECK(store.latest()->progress().version == passes.published());
  CHECK_FALSE(passes.under_way());
}

TEST_CASE_FIXTURE(Publishing, "what was published is up to date once it holds the last blend") {
  parameters.at_once = 2;
  CHECK(passes.publish_now({}, TimePoint::max()));
  parameters.unfinished = 1;
  passes.open();
  passes.begin([] { return 1.0; }, {});
  passes.blend(landing, 0.5);
  CHECK_FALSE(passes.is_up_to_date());
  passes.open(1h);
  passes.begin([] { return 1.0; }, {});
  CHECK(passes.complete());  // of the step before the blend
  CHECK_FALSE(passes.is_up_to_date());
  parameters.unfinished = 0;
  CHECK(passes.complete());
  CHECK(passes.is_up_to_date());
}

TEST_CASE_FIXTURE(Publishing,
                  "a device's snapshot keeps the progress of the moment it was copied") {
  parameters.done = false;
  int reads = 0;
  passes.open();
  passes.begin([&reads] { return ++reads; }, at_clock(3));
  passes.complete();
  CHECK(passes.under_way());
  CHECK(version() == 0);
  CHECK(reads == 0);
  passes.open();  // the device is busy: the next publish does not happen
  passes.begin([&reads] { return ++reads; }, at_clock(4));
  parameters.done = true;
  passes.complete();
  CHECK_FALSE(passes.under_way());
  CHECK(version() == 1);
  CHECK(store.latest()->progress().clock == 3);
  CHECK(reads == 1);
  CHECK(parameters.log == "copy; ");
}

TEST_CASE_FIXTURE(Publishing, "publishing now takes the place of a copy that is under way") {
  passes.open();
  parameters.done = false;
  passes.begin([] { return 4.0; }, at_clock(3));
  parameters.done = true;
  const auto now = std::chrono::steady_clock::now();
  CHECK(passes.publish_now(at_clock(5), now + 10s));
  CHECK(version() == 1);
  CHECK(store.latest()->progress().clock == 5);
  CHECK_FALSE(passes.under_way());
  CHECK_FALSE(passes.publish_now(at_clock(6), now - 1s));
}

namespace {

constexpr std::uint64_t piece = ParallelPass::piece_bytes;

}  // namespace

TEST_CASE("a pass visits every byte once, whatever the number of threads and the size") {
  for (const unsigned threads : {0u, 1u, 2u, 5u}) {
    ParallelPass passes(threads);
    CHECK(passes.threads() == std::max(1u, threads));
    for (const std::uint64_t length : {std::uint64_t{0}, std::uint64_t{1}, piece - 1, piece,
                                       piece + 1, 3 * piece, 7 * piece + 64}) {
      CAPTURE(threads);
      CAPTURE(length);
      std::vector<std::uint8_t> visits(length + 192);
      passes.run({64, length}, [&visits](ByteRange part) {
        for (std::uint64_t at = part.offset; at < part.end(); ++at) ++visits[at];
      });
      CHECK(std::ranges::count(visits, 1) == static_cast<std::ptrdiff_t>(length));
      CHECK(std::ranges::count(visits, 0) == 192);
      CHECK(std::ranges::count(std::span(visits).subspan(64, length), 1) ==
            static_cast<std::ptrdiff_t>(length));
    }
  }
}

TEST_CASE("pieces begin a multiple of the piece size into the range") {
  ParallelPass passes(3);
  std::mutex mutex;
  std::set<std::uint64_t> offsets;
  passes.run({128, 4 * piece + 1}, [&](ByteRange part) {
    const std::lock_guard lock(mutex);
    offsets.insert(part.offset);
  });
  const std::set<std::uint64_t> expected = {128, 128 + piece, 128 + 2 * piece, 128 + 3 * piece,
                                            128 + 4 * piece};
  CHECK(offsets == expected);
}

TEST_CASE("helpers take part in a pass") {
  ParallelPass passes(2);
  std::mutex mutex;
  std::condition_variable joined;
  std::set<std::thread::id> threads;
  // Each piece waits for a second thread: the caller alone would wait for ever.
  passes.run({0, 2 * piece}, [&](ByteRange) {
    std::unique_lock lock(mutex);
    threads.insert(std::this_thread::get_id());
    joined.notify_all();
    joined.wait(lock, [&] { return threads.size() == 2; });
  });
  CHECK(threads.size() == 2);
}

TEST_CASE("a pass ends with all its pieces done, however often one follows another") {
  ParallelPass passes(3);
  std::vector<int> values(4);
  for (int round = 1; round <= 300; ++round) {
    passes.run({0, 4 * piece}, [&](ByteRange part) { values[part.offset / piece] += 1; });
    REQUIRE(values == std::vector<int>(4, round));
  }
}

namespace {

// How many of `passes` are shared when they cost so much alone and shared.
int shared_of(SharingChoice& choice, int passes, double alone, double shared) {
  int count = 0;
  for (int i = 0; i < passes; ++i) {
    const bool share = choice.share();
    choice.took(share ? shared : alone);
    count += share;
  }
  return count;
}

}  // namespace

TEST_CASE("a pass is tried both ways first, alone and then shared") {
  SharingChoice choice;
  CHECK_FALSE(choice.share());
  choice.took(1);
  CHECK(choice.share());
}

TEST_CASE("the faster way is taken, but for one pass in a period") {
  constexpr int periods = 10;
  constexpr int passes = periods * static_cast<int>(SharingChoice::retry_every);
  SharingChoice sharing_pays;
  shared_of(sharing_pays, 2, 2, 1);
  CHECK(shared_of(sharing_pays, passes, 2, 1) == passes - periods);
  SharingChoice sharing_costs;
  shared_of(sharing_costs, 2, 1, 2);
  CHECK(shared_of(sharing_costs, passes, 1, 2) == periods);
}

TEST_CASE("one slow pass does not settle the matter, and a change is followed") {
  SharingChoice choice;
  shared_of(choice, 2, 2, 100);  // the shared one was unlucky
  shared_of(choice, 20 * static_cast<int>(SharingChoice::retry_every), 2, 1);
  CHECK(shared_of(choice, 15, 2, 1) >= 14);
  shared_of(choice, 20 * static_cast<int>(SharingChoice::retry_every), 1, 2);
  CHECK(shared_of(choice, 15, 1, 2) <= 1);
}

namespace dpwa {
namespace {

struct Counts {
  int blends = 0;
  std::uint64_t allocations = 0;
};

// What the trainer of a node takes from the heap in `steps` steps, after some to warm up, with a
// peer that publishes as often.
Counts allocations_of(test::VectorCluster& cluster, int steps, bool pulls) {
  Counts counts;
  for (int step = -20; step < steps; ++step) {
    cluster.at(1).gossip().publish([] { return 2.0; });
    if (pulls) {
      cluster.at(1).gossip().begin_pull();
      cluster.at(1).gossip().update_wait();
    }
    const double loss = 1.0 + step;
    const auto before = test::allocations();
    cluster.at(0).gossip().update_send([loss] { return loss; });
    const StepReport report = cluster.at(0).gossip().update_wait();
    const auto after = test::allocations();
    const Client& client = cluster.at(0).gossip().node().client();
    REQUIRE(test::eventually([&] { return !client.under_way(); }));
    if (step < 0) continue;
    counts.allocations += after - before;
    counts.blends += report.outcome == Outcome::mixed;
  }
  return counts;
}

// The control block of the snapshot's shared_ptr.
constexpr std::uint64_t per_publish = 1;

}  // namespace

TEST_CASE("a step that waits for its pull allocates once for its publish and for nothing else") {
  test::VectorCluster cluster(
      2, 16 * 200, [](Config& config) { config.gossip.step_budget = config.gossip.timeout; }, 200);
  cluster.start();
  const Counts counts = allocations_of(cluster, 100, /*pulls=*/true);
  CHECK(counts.blends >= 95);  // the ledger passes the peer over now and then
  CHECK(counts.allocations == 100 * per_publish);
}

TEST_CASE("a step that blends a late pull allocates once for its publish and for nothing else") {
  test::VectorCluster cluster(
      2, 16 * 200, [](Config& config) { config.gossip.ledger = false; }, 200);
  cluster.start();
  const Counts counts = allocations_of(cluster, 400, /*pulls=*/false);
  CHECK(counts.blends > 10);
  CHECK(counts.allocations == 400 * per_publish);
}

}  // namespace dpwa
