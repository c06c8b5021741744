#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>

#include <atomic>
#include <barrier>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "test/adapters/collective/training_nodes.h"

// Synchronous data parallel against one process that sees the whole batch.
namespace dpwa {

using namespace test;

c10::Device test::training_device() {
  return c10::kCPU;
}

TEST_CASE("nodes with parts of a batch, even or not, end where one process with all of it does") {
  const Data data = data_of(128);
  for (int nodes = 1; nodes <= 4; ++nodes) {
    for (const auto& [name, make_optimizer] : optimizers()) {
      INFO(nodes << " nodes, " << name);
      Net single(5);
      const auto single_optimizer = make_optimizer(single.parameters());
      for (int step = 0; step < 200; ++step) {
        single_optimizer->zero_grad();
        loss_of(single, data, 0, 128).backward();
        single_optimizer->step();
      }
      auto models = models_of<Net>(nodes, 5);
      std::vector<Tensor> after(static_cast<std::size_t>(nodes));
      std::barrier barrier(nodes);
      std::atomic<int> different = 0;
      run(nodes, [&](int rank, const Config& config) {
        Net& model = *models[static_cast<std::size_t>(rank)];
        const auto optimizer = make_optimizer(model.parameters());
        const auto adapter = make_adapter(config, model);
        adapter->start();
        // 128 = 43 + 43 + 42, and 4 x 32.
        const int share = 128 / nodes;
        const int more = 128 % nodes;
        const int from = rank * share + std::min(rank, more);
        const int count = share + (rank < more ? 1 : 0);
        for (int step = 0; step < 200; ++step) {
          adapter->set_batch_size(static_cast<std::uint64_t>(count));
          optimizer->zero_grad();
          const Tensor loss = loss_of(model, data, from, count);
          loss.backward();
          const StepReport report = adapter->step(*optimizer, loss);
          if (report.outcome != (nodes > 1 ? Outcome::averaged : Outcome::skipped) ||
              report.participants != static_cast<unsigned>(nodes) || report.clock != step + 1)
            ++different;
          after[static_cast<std::size_t>(rank)] = flat(model);
          barrier.arrive_and_wait();
          if (!torch::equal(after[0], after[static_cast<std::size_t>(rank)])) ++different;
          barrier.arrive_and_wait();
        }
        CHECK(adapter->finish().participants == static_cast<std::size_t>(nodes));
      });
      CHECK(different == 0);
      CHECK(relative_distance(flat(*models[0]), flat(single)) <= 1e-5);
      CHECK_FALSE(models[0]->unused->weight.grad().defined());
    }
  }
}

TEST_CASE("a parameter that one node alone uses is averaged with zeros") {
  auto models = models_of<Net>(2, 5);
  const Data data = data_of(32);
  run(2, [&](int rank, const Config& config) {
    Net& model = *models[static_cast<std::size_t>(rank)];
    torch::optim::SGD optimizer(model.parameters(), 0.1);
    const auto adapter = make_adapter(config, model);
    adapter->start();
    for (int step = 0; step < 3; ++step) {
      optimizer.zero_grad();
      Tensor loss = loss_of(model, data, 0, 32);
      if (rank == 1) loss = loss + model.unused(torch::ones({1, 4})).sum();
      loss.backward();
      adapter->average_gradients();
      REQUIRE(model.unused->bias.grad().defined());
      CHECK(model.unused->bias.grad().mean().item<double>() == doctest::Approx(0.5));
      adapter->step(optimizer, loss);
    }
    adapter->finish();
  });
  CHECK(torch::equal(flat(*models[0]), flat(*models[1])));
}

TEST_CASE("gradients add up under accumulate(), and a second backward pass without it throws") {
  auto models = models_of<Net>(2, 5);
  Net single(5);
  const Data data = data_of(64);
  run(2, [&](int rank, const Config& config) {
    Net& model = *models[static_cast<std::size_t>(rank)];
    torch::optim::SGD optimizer(model.parameters(), 0.1);
    const auto adapter = make_adapter(config, model);
    adapter->start();
    for (int step = 0; step < 5; ++step) {
      optimizer.zero_grad();
      {
        const Accumulation local = adapter->accumulate();
        loss_of(model, data, rank * 32, 16).backward();
      }
      const Tensor loss = loss_of(model, data, rank * 32 + 16, 16);
      loss.backward();
      CHECK_THROWS_AS(loss_of(model, data, 0, 16).backward(), std::logic_error);
      adapter->step(optimizer, loss);
    }
    adapter->finish();
  });
  torch::optim::SGD optimizer(single.parameters(), 0.1);
  for (int step = 0; step < 5; ++step) {
    optimizer.zero_grad();
    for (int part = 0; part < 4; ++part) (loss_of(single, data, part * 16, 16) / 2).backward();
    optimizer.step();
  }
  CHECK(torch::equal(flat(*models[0]), flat(*models[1])));
  CHECK(relative_distance(flat(*models[0]), flat(single)) <= 1e-5);
}

TEST_CASE("nodes that run out of data join with zeros, and all end with one model") {
  auto models = models_of<Net>(3, 5);
  const Data data = data_of(96);
  run(3, [&](int rank, const Config& config) {
    Net& model = *models[static_cast<std::size_t>(rank)];
    torch::optim::SGD optimizer(model.parameters(), 0.1);
    const auto adapter = make_adapter(config, model);
    adapter->start();
    const int steps = 4 + 3 * rank;  // 4, 7, 10
    for (int step = 0; step < steps; ++step) {
      adapter->set_batch_size(32);
      optimizer.zero_grad();
      const Tensor loss = loss_of(model, data, rank * 32, 32);
      loss.backward();
      const StepReport report = adapter->step(optimizer, loss);
      CHECK(report.participants == (step < 4 ? 3U : step < 7 ? 2U : 1U));
    }
    const FinishReport report = adapter->finish();
    CHECK(report.averaged);
    CHECK(report.participants == 3);
  });
  CHECK(torch::equal(flat(*models[0]), flat(*models[1])));
  CHECK(torch::equal(flat(*models[0]), flat(*models[2])));
  // Alone, with its own gradients, the last one went on as one process would.
  Net single(5);
  torch::optim::SGD optimizer(single.parameters(), 0.1);
  for (int step = 0; step < 10; ++step) {
    const int from = step < 4 ? 0 : step < 7 ? 32 : 64;
    optimizer.zero_grad();
    loss_of(single, data, from, 96 - from).backward();
    optimizer.step();
  }
  CHECK(relative_distance(flat(*models[2]), flat(single)) <= 1e-5);
}

TEST_CASE("halves travel, sums are fp32, and replicas stay equal") {
  for (const auto compression : {GradientCompression::fp16, GradientCompression::bf16}) {
    auto models = models_of<Net>(3, 5);
    auto exact = std::make_shared<Net>(5);
    const Data data = data_of(96);
    run(
        3,
        [&](int rank, const Config& config) {
          Net& model = *models[static_cast<std::size_t>(rank)];
          torch::optim::SGD optimizer(model.parameters(), 0.1);
          const auto adapter = make_adapter(config, model);
          adapter->start();
          make_steps(*adapter, rank, model, optimizer, data, 20);
          adapter->finish();
        },
        [&](Config& config) { config.collective.compression = compression; });
    torch::optim::SGD optimizer(exact->parameters(), 0.1);
    for (int step = 0; step < 20; ++step) {
      optimizer.zero_grad();
      loss_of(*exact, data, 0, 96).backward();
      optimizer.step();
    }
    CHECK(torch::equal(flat(*models[0]), flat(*models[1])));
    CHECK(torch::equal(flat(*models[0]), flat(*models[2])));
    const double distance = relative_distance(flat(*models[0]), flat(*exact));
    CHECK(distance > 0);
    CHECK(distance < (compression == GradientCompression::fp16 ? 1e-4 : 1e-3));
  }
}

TEST_CASE("a bucket for each parameter, or one for all, gives the same mean") {
  std::vector<Tensor> results;
  for (const std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{300}, std::uint64_t{1} << 20}) {
    auto models = models_of<Net>(2, 5);
    const Data data = data_of(64);
    run(
        2,
        [&](int rank, const Config& config) {
          Net& model = *models[static_cast<std::size_t>(rank)];
          torch::optim::SGD optimizer(model.parameters(), 0.1);
          const auto adapter = make_adapter(config, model);
          adapter->start();
          make_steps(*adapter, rank, model, optimizer, data, 5);
          adapter->finish();
        },
        [&](Config& config) { config.collective.bucket_bytes = bytes; });
    CHECK(torch::equal(flat(*models[0]), flat(*models[1])));
    results.push_back(flat(*models[0]));
  }
  CHECK(relative_distance(results[0], results[1]) < 1e-6);
  CHECK(relative_distance(results[0], results[2]) < 1e-6);
}

struct Normed : torch::nn::Module {
  explicit Normed(std::uint64_t seed) {
    torch::manual_seed(static_cast<std::int64_t>(seed));
    norm = register_module("norm", torch::nn::BatchNorm1d(6));
  }
  torch::nn::BatchNorm1d norm{nullptr};
};

TEST_CASE("BatchNorm statistics are those of the first rank, or the mean") {
  for (const bool average : {false, true}) {
    auto models = models_of<Normed>(2, 5);
    const Data data = data_of(64);
    run(
        2,
        [&](int rank, const Config& config) {
          Normed& model = *models[static_cast<std::size_t>(rank)];
          torch::optim::SGD optimizer(model.parameters(), 0.0);
          const auto adapter = make_adapter(config, model);
          adapter->start();
          optimizer.zero_grad();
          const Tensor loss = model.norm(data.x.narrow(0, rank * 32, 32)).square().sum();
          loss.backward();
          adapter->step(optimizer, loss);
          adapter->finish();
        },
        [&](Config& config) { config.collective.average_buffers = average; });
    CHECK(torch::equal(flat(*models[0]), flat(*models[1])));
    const Tensor first = data.x.narrow(0, 0, 32).mean(0) * 0.1;
    const Tensor mean = (data.x.narrow(0, 0, 32).mean(0) + data.x.narrow(0, 32, 32).mean(0)) * 0.05;
    CHECK(torch::allclose(models[1]->norm->running_mean, average ? mean : first, 1e-4, 1e-6));
  }
}

TEST_CASE("float64 buffers keep their digits, and float16 gradients whose mean is finite stay so") {
  struct Mixed : torch::nn::Module {
    explicit Mixed(std::uint64_t /*seed*/) {
      weight = register_parameter("weight", torch::zeros({4}, torch::kHalf));
      time = register_buffer("time", torch::zeros({1}, torch::kDouble));
      scale = register_buffer("scale", torch::ones({1}, torch::kHalf));
    }
    Tensor weight, time, scale;
  };
  constexpr double now = 1.7e9 + 0.25;
  auto models = models_of<Mixed>(3, 5);
  run(3, [&](int rank, const Config& config) {
    Mixed& model = *models[static_cast<std::size_t>(rank)];
    torch::optim::SGD optimizer(model.parameters(), 1e-3);
    const auto adapter = make_adapter(config, model);
    adapter->start();
    for (int step = 0; step < 2; ++step) {
      optimizer.zero_grad();
      if (rank == 0) model.time.fill_(now);
      (model.weight * 40000).sum().backward();  // the sum of all is beyond float16
      adapter->step(optimizer, {});
    }
    adapter->finish();
  });
  for (const auto& model : models) {
    CHECK(model->time.item<double>() == now);
    CHECK((model->weight.to(torch::kFloat) + 80).abs().max().item<double>() < 0.2);
  }
}

TEST_CASE("a node whose checkpoint is behind takes over weights, optimizer and clock") {
  auto models = models_of<Net>(2, 5);
  models[1] = std::make_shared<Net>(6);
  const Data data = data_of(64);
  Net single(6);
  torch::optim::Adam single_optimizer(single.parameters(), 0.01);
  const auto single_step = [&] {
    single_optimizer.zero_grad();
    loss_of(single, data, 0, 64).backward();
    single_optimizer.step();
  };
  for (int step = 0; step < 3; ++step) single_step();
  run(2, [&](int rank, const Config& config) {
    Net& model = *models[static_cast<std::size_t>(rank)];
    torch::optim::Adam optimizer(model.parameters(), 0.01);
    if (rank == 1) {  // three steps of its own, as before a checkpoint
      for (int step = 0; step < 3; ++step) {
        optimizer.zero_grad();
        loss_of(model, data, 0, 64).backward();
        optimizer.step();
      }
    }
    const auto adapter = make_adapter(config, model);
    adapter->restore({rank == 1 ? 3.0 : 1.0, {}});
    adapter->start();
    CHECK(adapter->resume_state().clock == 3);
    make_steps(*adapter, rank, model, optimizer, data, 3);
    CHECK(adapter->resume_state().clock == 6);
    adapter->finish();
  });
  for (int step = 0; step < 3; ++step) single_step();
  CHECK(torch::equal(flat(*models[0]), flat(*models[1])));
  CHECK(relative_distance(flat(*models[0]), flat(single)) <= 1e-5);
}

TEST_CASE(
    "checkpoints of one clock that differ, as of nodes that trained apart, become one state") {
  auto models = models_of<Net>(2, 5);
  models[1] = std::make_shared<Net>(6);
  const Data data = data_of(64);
  run(2, [&](int rank, const Config& config) {
    Net& model = *models[static_cast<std::size_t>(rank)];
    torch::optim::Adam optimizer(model.parameters(), 0.01);
    for (int step = 0; step < 3; ++step) {  // each on data of its own
      optimizer.zero_grad();
      loss_of(model, data, rank * 32, 32).backward();
      optimizer.step();
    }
    const auto adapter = make_adapter(config, model);
    adapter->restore({3.0, {}});
    adapter->start();
    make_steps(*adapter, rank, model, optimizer, data, 4);
    adapter->finish();
  });
  CHECK(torch::equal(flat(*models[0]), flat(*models[1])));
}

namespace {

std::shared_ptr<torch::nn::Conv2dImpl> convolution(torch::MemoryFormat format) {
  torch::manual_seed(5);
  torch::nn::Conv2d conv(3, 8, 3);
  conv->weight.set_data(conv->weight.detach().contiguous(format));
  return conv.ptr();
}

}  // namespace

TEST_CASE("channels_last weights stay so, and train as others do, but not beside others") {
  constexpr auto last = torch::MemoryFormat::ChannelsLast;
  const Tensor images = torch::randn({2, 3, 8, 8});
  const auto train = [&](torch::MemoryFormat format) {
    std::vector models{convolution(format), convolution(format)};
    run(2, [&](int rank, const Config& config) {
      auto& model = *models[static_cast<std::size_t>(rank)];
      torch::optim::SGD optimizer(model.parameters(), torch::optim::SGDOptions(0.01).momentum(0.9));
      const auto adapter = make_adapter(config, model);
      adapter->start();
      for (int step = 0; step < 5; ++step) {
        optimizer.zero_grad();
        const Tensor own = images.narrow(0, rank, 1).contiguous(format);
        const Tensor loss = model.forward(own).square().mean();
        loss.backward();
        CHECK(model.weight.grad().is_contiguous(format));
        adapter->step(optimizer, loss);
      }
      adapter->finish();
      CHECK(model.weight.is_contiguous(format));
    });
    CHECK(torch::equal(models[0]->weight, models[1]->weight));
    return models[0]->weight.detach();
  };
  CHECK(relative_distance(train(last), train(torch::MemoryFormat::Contiguous)) < 1e-5);

  const std::vector models{convolution(torch::MemoryFormat::Contiguous), convolution(last)};
  run(2, [&](int rank, const Config& config) {
    const auto adapter = make_adapter(config, *models[static_cast<std::size_t>(rank)]);
    CHECK_THROWS_WITH(adapter->start(), doctest::Contains("channels_last"));
  });
}

TEST_CASE("fewer nodes than min_nodes in the final model are an error of the end") {
  auto models = models_of<Net>(2, 5);
  for (const std::uint32_t wanted : {2U, 3U}) {
    run(
        2,
        [&](int rank, const Config& config) {
          const auto adapter = make_adapter(config, *models[static_cast<std::size_t>(rank)]);
          adapter->start();
          CHECK(adapter->finish().enough == (wanted <= 2));
        },
        [wanted](Config& config) { config.gossip.min_nodes = wanted; });
  }
}

}  // namespace dpwa
