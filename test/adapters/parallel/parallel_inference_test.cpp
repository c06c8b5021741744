#include "adapters/parallel/parallel_inference.h"

#include <ATen/Parallel.h>

#include <barrier>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>

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
