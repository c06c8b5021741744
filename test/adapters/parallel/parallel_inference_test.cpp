#include <ATen/Parallel.h>
#include <c10/util/Exception.h>

#include <barrier>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>

#include "adapters/parallel/batch_search.h"
#include "adapters/parallel/parallel_inference.h"
#include "adapters/parallel/saved_training.h"
#include "test/adapters/doctest_with_torch.h"
#include "test/adapters/parallel/training_net.h"

using namespace dpwa;
using test::TrainingNet;
using torch::Tensor;

TEST_CASE("outputs are ordered, include the tail, and are those of one thread bit for bit") {
  TrainingNet net(5);
  const auto optimizer = test::optimizer_of(net, false);
  for (int i = 0; i < 20; ++i) test::step(net, *optimizer, 32);
  const auto before = test::copy_of(net);
  torch::manual_seed(3);
  const Tensor inputs = torch::randn({1037, 6});
  const auto outputs = [&](std::size_t threads) {
    InferenceOptions options;
    options.threads = threads;
    return infer_rows(net, inputs, 100, [&](const Tensor& x) { return net.forward(x); }, options);
  };
  const Tensor one = outputs(1);
  CHECK(one.sizes() == at::IntArrayRef({1037, 3}));
  for (const std::size_t threads : {2, 3, 8, 50}) CHECK(torch::equal(outputs(threads), one));
  // In evaluation mode: no dropout, running statistics, which stay as they are.
  net.eval();
  const torch::NoGradGuard no_grad;
  CHECK(torch::allclose(net.forward(inputs), one, 1e-5, 1e-6));
  CHECK(torch::allclose(outputs(0), one, 1e-5, 1e-6));
  CHECK(test::same(test::copy_of(net), before));
}

TEST_CASE("every thread is in inference mode, and all work at once") {
  TrainingNet net(5);
  net.dropout->eval();  // one layer that was frozen before
  constexpr std::size_t threads = 4;
  std::barrier together(threads);
  std::mutex mutex;
  std::set<std::thread::id> ids;
  InferenceOptions options;
  options.threads = threads;
  const int compute_threads = at::get_num_threads();
  const bool done = infer_parts(
      net, threads,
      [&](std::size_t) {
        together.arrive_and_wait();  // hangs unless all threads have a part
        CHECK(c10::InferenceMode::is_enabled());
        CHECK_FALSE(net.is_training());
        CHECK(at::get_num_threads() == 1);
        const std::scoped_lock lock(mutex);
        ids.insert(std::this_thread::get_id());
      },
      options);
  CHECK(done);
  CHECK(ids.size() == threads);
  CHECK(net.is_training());
  CHECK(net.norm->is_training());
  CHECK_FALSE(net.dropout->is_training());
  CHECK_FALSE(c10::InferenceMode::is_enabled());
  CHECK(at::get_num_threads() == compute_threads);
}

TEST_CASE("inference ends when it is told to, and what fails is thrown to the caller") {
  TrainingNet net(5);
  for (const std::size_t threads : {0, 1, 3}) {
    InferenceOptions options;
    options.threads = threads;
    std::vector<std::size_t> told;
    options.go_on = [&](std::size_t done) {
      told.push_back(done);
      return done < 5;
    };
    CHECK_FALSE(infer_parts(net, 1000, [](std::size_t) {}, options));
    CHECK(told.size() >= 5);
    CHECK(told.size() <= 5 + threads);
    for (std::size_t i = 0; i < told.size(); ++i) CHECK(told[i] == i + 1);
    options.go_on = [](std::size_t) { return true; };
    CHECK(infer_parts(net, 0, [](std::size_t) {}, options));
    const auto fail = [](std::size_t part) {
      if (part == 7) throw std::runtime_error("part 7");
    };
    CHECK_THROWS_WITH(infer_parts(net, 1000, fail, options), "part 7");
    options.go_on = [](std::size_t) -> bool { throw std::runtime_error("told"); };
    CHECK_THROWS_WITH(infer_parts(net, 10, [](std::size_t) {}, options), "told");
    CHECK(net.is_training());
  }
}

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
  const std::vector<std::function<void()>> refusals = {
      [] { C10_THROW_ERROR(OutOfMemoryError, "no more"); },
      [] { C10_THROW_ERROR(Error, "CUDA error: out of memory"); },
      [] { C10_THROW_ERROR(Error, "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `...`"); }};
  for (const auto& refusal : refusals) {
    const auto found = find_largest_batch(net, *optimizer, failing(refusal), options);
    CHECK(found.largest < 4);
    CHECK(found.largest >= 1);
  }
  CHECK_THROWS_AS(find_largest_batch(net, *optimizer,
                                     failing([] { throw std::logic_error("a bug"); }), options),
                  std::logic_error);
  CHECK(test::same(test::copy_of(net), values));
}
