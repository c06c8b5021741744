#include "adapters/parallel/batch_search.h"

#include <c10/util/Exception.h>

#include <stdexcept>

#include "adapters/parallel/saved_training.h"
#include "test/adapters/doctest_with_torch.h"
#include "test/adapters/parallel/training_net.h"

using namespace dpwa;
using test::TrainingNet;

namespace {

// The losses of some steps more.
std::vector<double> losses_after(TrainingNet& net, torch::optim::Optimizer& optimizer) {
  std::vector<double> losses;
  for (int i = 0; i < 4; ++i) losses.push_back(test::step(net, optimizer, 8));
  return losses;
}

}  // namespace

TEST_CASE("what was saved comes back bit by bit, and training goes on as if nothing had been") {
  for (const bool adam : {false, true}) {
    for (const int steps_before : {0, 3}) {
      CAPTURE(adam);
      CAPTURE(steps_before);
      TrainingNet plain(5), net(5);
      const auto plain_optimizer = test::optimizer_of(plain, adam);
      const auto optimizer = test::optimizer_of(net, adam);
      torch::manual_seed(9);
      for (int i = 0; i < steps_before; ++i) test::step(plain, *plain_optimizer, 8);
      const auto expected = losses_after(plain, *plain_optimizer);

      torch::manual_seed(9);
      for (int i = 0; i < steps_before; ++i) test::step(net, *optimizer, 8);
      const auto memory = net.first->weight.const_data_ptr();
      const auto values = test::copy_of(net);
      const auto gradient = net.first->weight.grad();
      const auto gradient_before = gradient.defined() ? gradient.clone() : gradient;
      const SavedTraining saved(net, *optimizer);
      for (int again = 0; again < 2; ++again) {
        for (int i = 0; i < 3; ++i) test::step(net, *optimizer, 16);
        optimizer->param_groups()[0].options().set_lr(7);
        net.dropout->eval();
        CHECK_FALSE(test::same(test::copy_of(net), values));
        saved.restore();
        CHECK(test::same(test::copy_of(net), values));
        CHECK(net.first->weight.const_data_ptr() == memory);
        CHECK(net.first->weight.grad().defined() == gradient_before.defined());
        if (gradient_before.defined())
          CHECK(torch::equal(net.first->weight.grad(), gradient_before));
        CHECK(net.dropout->is_training());
        CHECK(optimizer->state().empty() == (steps_before == 0));
      }
      CHECK(losses_after(net, *optimizer) == expected);
      CHECK(test::same(test::copy_of(net), test::copy_of(plain)));
    }
  }
}

TEST_CASE("a search finds the batch at which memory is refused, and leaves no trace") {
  for (const bool adam : {false, true}) {
    TrainingNet plain(5), net(5);
    const auto plain_optimizer = test::optimizer_of(plain, adam);
    const auto optimizer = test::optimizer_of(net, adam);
    torch::manual_seed(9);
    const auto expected = losses_after(plain, *plain_optimizer);
    torch::manual_seed(9);
    std::vector<BatchTrial> trials;
    BatchSearchOptions options;
    options.tried = [&](const BatchTrial& trial) { trials.push_back(trial); };
    const auto step = [&](std::uint64_t batch) {
      test::step(net, *optimizer, static_cast<std::int64_t>(batch) + 1);
      if (batch > 77) C10_THROW_ERROR(OutOfMemoryError, "as a GPU says it");
    };
    const BatchSearch found = find_largest_batch(net, *optimizer, step, options);
    CHECK(found.largest == 77);
    CHECK(found.usable == 69);
    CHECK(trials.size() == 14);  // 1 to 128, and between 64 and 128
    for (const BatchTrial& trial : trials) CHECK(trial.fits == (trial.batch <= 77));
    CHECK(losses_after(net, *optimizer) == expected);
  }
}

TEST_CASE("in host memory a search stays within its budget, by the line through small batches") {
  TrainingNet net(5), plain(5);
  const auto optimizer = test::optimizer_of(net, true);
  const auto plain_optimizer = test::optimizer_of(plain, true);
  torch::manual_seed(9);
  const auto expected = losses_after(plain, *plain_optimizer);
  torch::manual_seed(9);
  constexpr double per_sample = 4 << 20;
  std::vector<BatchTrial> trials;
  BatchSearchOptions options;
  options.budget = 3e9;
  options.tried = [&](const BatchTrial& trial) { trials.push_back(trial); };
  const auto step = [&](std::uint64_t batch) {
    const auto activations =
        torch::ones({static_cast<std::int64_t>(batch) * (1 << 20)});  // 4 MiB a sample
    CHECK(activations.numel() > 0);
    test::step(net, *optimizer, static_cast<std::int64_t>(batch) + 1);
  };
  const BatchSearch found = find_largest_batch(net, *optimizer, step, options);
  CHECK(found.memory.per_sample == doctest::Approx(per_sample).epsilon(0.1));
  const double wanted = (options.budget - found.memory.fixed) / found.memory.per_sample;
  CHECK(static_cast<double>(found.largest) == doctest::Approx(wanted).epsilon(0.01));
  CHECK(found.usable == with_margin(found.largest));
  REQUIRE(trials.size() >= 4);
  CHECK(trials.front().batch == 1);
  CHECK(trials.back().batch <= 128);  // long before the budget
  for (const BatchTrial& trial : trials) CHECK(trial.fits);
  CHECK(losses_after(net, *optimizer) == expected);
  CHECK(test::same(test::copy_of(net), test::copy_of(plain)));

  options.budget = 1e6;  // less than the process has
  CHECK(find_largest_batch(net, *optimizer, step, options).largest == 0);
  CHECK(find_largest_batch(net, *optimizer, step, options).usable == 0);
  options.budget = 3e9;
  options.limit = 5;
  CHECK(find_largest_batch(net, *optimizer, step, options).largest == 5);
  CHECK(find_largest_batch(net, *optimizer, step, options).usable == 5);
}

TEST_CASE("memory that is refused is a batch that does not fit, any other failure is passed on") {
  TrainingNet net(5);
  const auto optimizer = test::optimizer_of(net, false);
  test::step(net, *optimizer, 8);
  const auto values = test::copy_of(net);
  BatchSearchOptions options;
  options.budget = 1e12;
  const auto failing = [&](const std::function<void()>& fail) {
    return [&net, &optimizer, fail](std::uint64_t batch) {
      test::step(net, *optimizer, static_cast<std::int64_t>(batch) + 1);
      if (batch >= 4) fail();
    };
  };
  const auto found = find_largest_batch(
      net, *optimizer, failing([] { C10_THROW_ERROR(OutOfMemoryError, "no more"); }), options);
  CHECK(found.largest < 4);
  CHECK(found.largest >= 1);
  CHECK_THROWS_AS(find_largest_batch(net, *optimizer,
                                     failing([] { throw std::logic_error("a bug"); }), options),
                  std::logic_error);
  CHECK(test::same(test::copy_of(net), values));
}
