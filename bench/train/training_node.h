#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "adapters/adapter.h"
#include "bench/serve.h"
#include "bench/train/models.h"

namespace torch::optim {
class SGD;
}

namespace dpwa::bench {

// A model that is trained on a batch of its own, by SGD, on a device. Of a job: "model", "batch",
// "seed", "rank", and "device" ("cpu").
class Training {
 public:
  explicit Training(const Json& job);
  ~Training();
  Training(const Training&) = delete;
  Training& operator=(const Training&) = delete;

  torch::nn::Sequential& model() { return model_; }
  torch::optim::SGD& optimizer() { return *optimizer_; }
  std::int64_t elements() const;  // of all parameters

  void set_batch(const Json& job);
  at::Tensor backward();  // the loss
  void copy_to_host();    // all parameters, into memory that is kept; returns when they are there
  void finish() const;    // waits until the device has done all work

 private:
  const at::Device device_;
  torch::nn::Sequential model_;
  std::vector<at::Tensor> parameters_;
  std::unique_ptr<torch::optim::SGD> optimizer_;
  Batch batch_;
  std::vector<at::Tensor> on_host_;
};

// A node that trains by a back end, and beside it the same loop without one, which has a model of
// its own. All nodes of a group get the same commands. One step more than asked for comes first,
// untimed: it brings the nodes together.
// Job: {"config", "name", "threads", and what Training takes}
// Facts: {"parameters", "torch"}
//   -> {"do": "steps", "count", "loop": "exchange" by the back end, "plain", "blocking": plain, and
//       all parameters are copied to the host after each}
//   <- {"times_ns", "ns": of all of them, to the end of what the device does for them, "cpu_s",
//       "loss", "published": versions or gradients that left, "exchanged": steps that took in
//       something of others or of a server}
//   -> {"do": "serve", "seconds"}  <- {"cpu_s"}; only exchanges, without computing
//   -> {"do": "batch", "batch"}    <- {"cpu_s"}; trains on batches of that size from now on
class TrainingNode : public Measurer {
 public:
  explicit TrainingNode(const Json& job);
  ~TrainingNode() override;

  Json facts() const override;
  Json answer(const Json& command) override;

 private:
  Json steps(const Json& command);
  void serve(std::chrono::duration<double> length);
  std::uint64_t published() const;

  Json job_;
  Training training_;
  std::unique_ptr<Training> plain_;  // once it is asked for
  std::unique_ptr<Adapter> adapter_;
  std::uint64_t sent_ = 0;       // steps that sent something
  std::uint64_t exchanged_ = 0;  // steps that took something in
};

// The nanoseconds of each of so many.
template <typename Action>
std::vector<std::int64_t> timed(std::int64_t count, const Action& action) {
  std::vector<std::int64_t> times;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto from = SteadyClock::now();
    action();
    times.push_back(nanoseconds_since(from));
  }
  return times;
}

}  // namespace dpwa::bench
