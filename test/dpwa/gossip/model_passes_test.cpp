#include "dpwa/gossip/model_passes.h"

#include <doctest/doctest.h>

#include <chrono>
#include <cmath>
#include <string>

using namespace dpwa;

namespace {

using namespace std::chrono_literals;

// Parameters that only say what is done to them, on a device whose copies are complete when `done`.
class FakeParameters : public Parameters {
 public:
  const Manifest& manifest() const override { return manifest_; }
  void copy_out(std::span<std::byte>) override { log += "copy; "; }
  void blend(const Landing&, double) override { log += "blend; "; }
  void blend_and_copy_out(const Landing&, double, std::span<std::byte>) override {
    log += "both; ";
  }
  bool settled() override { return done; }
  void assign(std::span<const std::byte>) override {}

  std::string log;
  bool done = true;

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
