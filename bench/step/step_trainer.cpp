// dpwa-measure-step: what adapter->step adds to a training step, and whole training steps. A
// program of its own, because it counts its allocations and needs LibTorch.
#include <torch/nn/module.h>
#include <torch/types.h>

#include <ATen/Parallel.h>

#include <array>
#include <list>
#include <vector>

#include "adapters/adapter.h"
#include "bench/serve.h"
#include "bench/step/allocation_counter.h"
#include "bench/step/hand_written.h"
#include "bench/train/training_node.h"
#include "dpwa/config/open_log.h"

namespace dpwa::bench {
namespace {

struct Model : torch::nn::Module {
  explicit Model(const Json& tensors) {
    for (const Json& one : tensors)
      register_parameter(one.at(0), torch::full({one.at(1).get<std::int64_t>()}, 0.1F));
  }
};

class Trainer {
 public:
  Trainer(const std::string& config, const Json& job)
      : config_(load_config(config, job.at("name").get<std::string>())), model_(job.at("tensors")) {
    open_log(config_).use();
    adapter_ = make_adapter(config_, model_);
    adapter_->start();
  }
  ~Trainer() { adapter_->leave(); }

  // [send_ns, wait_ns, whether a pull was blended in, ns of waiting for the network, allocations by
  // this thread, and by all threads]
  std::array<std::int64_t, 6> step(const torch::Tensor& loss) {
    const std::uint64_t all = allocations_of_all_threads();
    const std::uint64_t own = allocations_of_this_thread();
    const auto begun = SteadyClock::now();
    adapter_->update_send(loss);
    const auto sent = nanoseconds_since(begun);
    // The optimizer's step is the caller's and would be here.
    const auto waits = SteadyClock::now();
    const StepReport report = adapter_->update_wait(loss);
    const auto waited = nanoseconds_since(waits);
    const auto own_after = allocations_of_this_thread();
    const auto all_after = allocations_of_all_threads();
    return {sent,
            waited,
            report.outcome == Outcome::mixed,
            std::chrono::nanoseconds(report.waited).count(),
            static_cast<std::int64_t>(own_after - own),
            static_cast<std::int64_t>(all_after - all)};
  }

 private:
  const Config config_;
  Model model_;
  std::unique_ptr<Adapter> adapter_;
};

// Trainers of one model, whose steps take turns, with a busy wait in place of forward and backward
// before each; and then the hand-written passes, so that the machine is the same for all.
// Job: {"name": NODE, "configs": [FILE, ...] of each trainer, "tensors": [[name, elements], ...],
// "threads": of torch, "hand_threads": [N, ...] of the passes, "compute_ns"}
//   -> {"do": "steps", "seconds" or "count"}
//   <- {"steps": [[STEP, ...] of each trainer], "hand": [[[copy_ns, copy_and_blend_ns,
//       blend_and_copy_ns], ...] of each number of threads]}
class StepTrainer : public Measurer {
 public:
  explicit StepTrainer(const Json& job) : compute_ns_(job.at("compute_ns")) {
    at::set_num_threads(job.at("threads"));
    std::size_t elements = 0;
    for (const Json& one : job.at("tensors")) elements += one.at(1).get<std::size_t>();
    for (const Json& config : job.at("configs")) trainers_.emplace_back(config, job);
    for (const Json& threads : job.at("hand_threads"))
      loops_.push_back(hand_written_passes(4 * elements, threads));
  }

  Json answer(const Json& command) override {
    const auto count = command.value("count", 1);
    const auto length = std::chrono::duration<double>(command.value("seconds", 0.0));
    const auto loss = torch::full({}, 1.0);
    std::vector<std::vector<std::array<std::int64_t, 6>>> steps(trainers_.size());
    std::vector<std::vector<std::array<std::int64_t, 3>>> hand(loops_.size());
    const auto begun = SteadyClock::now();
    for (int done = 0; done < count || SteadyClock::now() - begun < length; ++done) {
      std::size_t i = 0;
      for (Trainer& trainer : trainers_) {
        compute();
        steps[i++].push_back(trainer.step(loss));
      }
      for (i = 0; i < loops_.size(); ++i) hand[i].push_back(loops_[i]());
    }
    return {{"steps", steps}, {"hand", hand}};
  }

 private:
  void compute() const {
    for (const auto begun = SteadyClock::now(); nanoseconds_since(begun) < compute_ns_;) {
    }
  }

  const std::int64_t compute_ns_;
  std::list<Trainer> trainers_;
  std::vector<std::function<std::array<std::int64_t, 3>()>> loops_;
};

}  // namespace
}  // namespace dpwa::bench

int main(int argc, char** argv) {
  using namespace dpwa::bench;
  return serve(argc, argv,
               {{"step", [](const Json& job) { return std::make_unique<StepTrainer>(job); }},
                {"train", [](const Json& job) { return std::make_unique<TrainingNode>(job); }}});
}
