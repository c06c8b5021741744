#include "adapters/collective/gradient_reducer.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/div.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scalar_tensor.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <stdexcept>
#include <torch/csrc/distributed/c10d/reducer.hpp>
#include <unordered_map>
#include <utility>

#include "adapters/collective/c10d_reducer.h"
#include "adapters/collective/communication_thread.h"
#include "adapters/collective/engine/agreement.h"
#include "adapters/collective/engine/sum_in_halves.h"
#include "adapters/common/backward_hooks.h"
#include "adapters/common/tensor_checksum.h"

namespace dpwa::collective {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr auto averaging = "averaging gradients";

}  // namespace

// Called by the autograd engine on the training thread.
class GradientReducer::State {
 public:
  State(std::vector<std::pair<std::string, at::Tensor>> parameters, const ProcessGroup& group,
        const ReducerOptions& options);
  ~State();

  void contribute(bool joined);
  void repeat(const std::vector<bool>& used) { exchange_without_backward(used); }
  const std::vector<bool>& used() const { return used_; }
  std::optional<Result> end_step();

  double samples_ = 1;
  bool accumulating_ = false;
  bool stopping_ = false;
  std::uint32_t note_ = 0;
  BufferExchange buffers_;
  bool begun_ = false;  // a backward pass of this step sends, or has sent

 private:
  // A bucket on its way.
  struct Flight {
    at::Tensor buffer;
    std::vector<at::Tensor> views;  // of the buffer, for each parameter
    std::vector<at::Tensor> parameters;
    c10::intrusive_ptr<c10d::Work> work;  // none with a compression: the thread does it
  };

  void fired(std::size_t index);
  void require_no_second_pass() const;
  void begin();
  void exchange_without_backward(const std::vector<bool>& used);
  void complete();  // at the end of the backward pass: what did not fire
  void tell();
  void send_message();
  std::size_t launch(c10d::GradBucket& bucket);
  at::Tensor landed(std::size_t bucket);
  void wait_for_all();
  void write_gradients(double total);
  std::string words_for(std::size_t bucket) const;
  void fail();

  const ProcessGroup& group_;
  const ReducerOptions options_;
  std::vector<std::string> names_;
  std::vector<at::Tensor> parameters_;
  std::unordered_map<const void*, std::size_t> places_;  // of the parameters, by TensorImpl
  std::unique_ptr<BackwardHooks> hooks_;
  std::unique_ptr<c10d::Reducer> reducer_;
  std::unique_ptr<CommunicationThread> thread_;  // with a compression
  bool rebuilt_ = false;
  std::optional<CollectiveError> unusable_;  // since the buckets could not be prepared

  // --- of the step under way
  bool joined_ = false;
  bool landed_ = false;
  bool told_ = false;                          // the message is on its way, or nothing can be sent
  bool ended_ = false;                         // the next pass is of another step
  double weight_ = 1;                          // of this member's gradients, in units of unit_
  std::vector<bool> fired_;                    // in the pass that sends
  std::vector<bool> used_;                     // in any pass, also under accumulate()
  std::optional<std::vector<bool>> repeated_;  // used_ of a step that is made without a pass
  std::vector<Flight> flights_;
  StepMessage message_;
  std::vector<c10::intrusive_ptr<c10d::Work>> others_;  // message and buffers
  std::optional<CollectiveError> error_;
  std::chrono::nanoseconds waited_{};
  std::uint64_t bytes_ = 0;

  // --- of the last step: the same on all members
  double unit_ = 1;
  StepTally last_;
  std::uint64_t steps_ = 0;  // of this group
};

GradientReducer::State::State(std::vector<std::pair<std::string, at::Tensor>> parameters,
                              const ProcessGroup& group, const ReducerOptions& options)
    : group_(group), options_(options) {
  buffers_.set_average(options.average_buffers);
  for (auto& [name, tensor] : parameters) {
    names_.push_back(name);
    parameters_.push_back(tensor);
  }
  if (options.compression != Compression::none) thread_ = std::make_unique<CommunicationThread>();
  fired_.resize(parameters_.size());
  used_.resize(parameters_.size());
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    places_[parameters_[i].unsafeGetTensorImpl()] = i;
  // Made before the hooks of the Reducer, which come later on the same nodes.
  hooks_ = std::make_unique<BackwardHooks>(
      parameters_, [this](std::size_t i) { fired(i); }, [this] { require_no_second_pass(); });
  group.run("preparing buckets", [&] {
    reducer_ = make_c10d_reducer(
        parameters_, names_, group, options,
        std::make_unique<BucketHook>([this](c10d::GradBucket& bucket) { return launch(bucket); },
                                     [this](std::size_t bucket) { return landed(bucket); }));
  });
}

GradientReducer::State::~State() {
  thread_.reset();
  hooks_.reset();
  try {
    if (reducer_) reducer_->remove_autograd_hooks();
  } catch (const std::exception&) {
    // Nothing can call it any more.
  }
}

void GradientReducer::State::fired(std::size_t index) {
  if (std::exchange(ended_, false)) std::fill(used_.begin(), used_.end(), false);
  used_[index] = true;
  require_dense_gradient(parameters_[index], names_[index]);
  if (accumulating_) return;
  if (!begun_) {
    begin();
    torch::autograd::Engine::get_default_engine().queue_callback([this] { complete(); });
  }
  fired_[index] = true;
}

void GradientReducer::State::require_no_second_pass() const {
  if (!accumulating_ && landed_) refuse_second_pass();
}

void GradientReducer::State::begin() {
  begun_ = true;
  weight_ = samples_ / unit_;
  flights_.clear();
  others_.clear();
  told_ = false;
  error_ = unusable_;
  bytes_ = 0;
  std::fill(fired_.begin(), fired_.end(), false);
  if (!unusable_) reducer_->prepare_for_backward({});
}

void GradientReducer::State::complete() {
  if (repeated_) used_ = *std::exchange(repeated_, std::nullopt);
  for (std::size_t i = 0; i < fired_.size(); ++i) {
    if (!fired_[i] && !unusable_) reducer_->autograd_hook(i);
  }
  if (!told_) tell();  // no bucket was launched
}

// Sent just before the last bucket, when the used parameters are known. Behind that bucket it would
// wait until a thread of the engine has transferred the bucket.
void GradientReducer::State::tell() {
  told_ = true;
  const at::NoGradGuard no_grad;
  StepMessage::Own own{samples_, joined_, stopping_, note_, {}};
  // One that has joined makes no steps any more.
  if (options_.send_checksums && !joined_ && compares_weights_at(steps_))
    own.weights = checksum_of(parameters_);
  message_.fill(group_, own, used_);
  if (error_) return;
  buffers_.fill(std::max(0, last_.first_at_work));
  try {
    if (thread_) {
      thread_->run([this] { send_message(); });
    } else {
      send_message();
    }
  } catch (...) {
    fail();
  }
}

void GradientReducer::State::send_message() {
  message_.send(group_, others_);
  buffers_.send(group_, others_);
}

std::size_t GradientReducer::State::launch(c10d::GradBucket& bucket) {
  const at::NoGradGuard no_grad;
  if (bucket.isLast()) tell();
  Flight flight{bucket.getBuffer(), bucket.getGradients(), bucket.getParameters(), {}};
  if (!error_) {
    try {
      bytes_ += thread_ ? 2 * flight.buffer.numel() : flight.buffer.nbytes();
      if (weight_ != 1) flight.buffer.mul_(weight_);
      std::vector<at::Tensor> list{flight.buffer};
      if (thread_) {
        thread_->run([this, buffer = flight.buffer]() mutable {
          auto sum = buffer.to(at::kFloat);
          sum_in_halves(group_, sum, options_.compression, 1);
          buffer.copy_(sum);
        });
      } else {
        flight.work = group_.c10d()->allreduce(list);
      }
    } catch (...) {
      fail();
    }
  }
  flights_.push_back(std::move(flight));
  return flights_.size() - 1;
}

at::Tensor GradientReducer::State::landed(std::size_t bucket) {
  if (!std::exchange(landed_, true)) wait_for_all();
  return flights_.at(bucket).buffer;
}

void GradientReducer::State::wait_for_all() {
  const at::NoGradGuard no_grad;
  const auto from = SteadyClock::now();
  if (thread_) {
    options_.begin_wait(words_for(0));
    try {
      thread_->wait();
    } catch (...) {
      fail();
    }
  }
  std::vector<at::Tensor> in_use{message_.tensor(), buffers_.tensor()};
  for (const auto& flight : flights_) in_use.push_back(flight.buffer);
  const auto wait_for = [&](const c10::intrusive_ptr<c10d::Work>& work) {
    auto problem = work ? await_work(group_, work, averaging, in_use) : std::nullopt;
    if (problem && !error_) error_ = std::move(problem);
  };
  for (std::size_t i = 0; i < flights_.size(); ++i) {
    options_.begin_wait(words_for(i));
    wait_for(flights_[i].work);
  }
  for (const auto& work : others_) wait_for(work);
  waited_ = SteadyClock::now() - from;
  options_.end_wait();
  if (error_) return;
  buffers_.take(group_);
  const double total = message_.samples() / unit_;
  write_gradients(total > 0 ? total : 1);  // no member had a batch: zeros
}

// Called once all have arrived. Until then this member may need .grad to repeat the step.
void GradientReducer::State::write_gradients(double total) {
  const auto divisor = at::scalar_tensor(total, at::kDouble);
  for (const Flight& flight : flights_) {
    for (std::size_t i = 0; i < flight.parameters.size(); ++i) {
      const auto& parameter = flight.parameters[i];
      if (!message_.used(places_.at(parameter.unsafeGetTensorImpl()))) continue;
      auto& gradient = parameter.mutable_grad();
      if (!gradient.defined()) gradient = at::empty_like(parameter);
      if (gradient.scalar_type() == flight.buffer.scalar_type()) {
        at::div_out(gradient, flight.views[i], divisor);
      } else {
        gradient.copy_(flight.views[i].div(total));
      }
    }
  }
}

std::string GradientReducer::State::words_for(std::size_t bucket) const {
  const auto& first = flights_[bucket].parameters.front();
  return "gradients, bucket " + std::to_string(bucket + 1) + " of " +
         std::to_string(flights_.size()) + ", from " +
         names_[places_.at(first.unsafeGetTensorImpl())] + " on";
}

void GradientReducer::State::fail() {
  if (!error_) error_ = group_.error(averaging);
}

void GradientReducer::State::contribute(bool joined) {
  joined_ = joined;
  const bool accumulated = !ended_ && std::ranges::find(used_, true) != used_.end();
  if (accumulated && !joined) return exchange_without_backward(std::vector(used_));
  const double samples = std::exchange(samples_, 0);
  for (auto& parameter : parameters_) parameter.mutable_grad().reset();
  exchange_without_backward(std::vector<bool>(parameters_.size(), false));
  samples_ = samples;
}

// c10d's Reducer works only inside a backward pass. This pass uses no parameter, and sends the
// content of .grad.
void GradientReducer::State::exchange_without_backward(const std::vector<bool>& used) {
  const at::AutoGradMode enabled(true);
  auto nothing = at::ones({1}, at::kFloat);
  nothing.set_requires_grad(true);
  auto result = nothing * 1;
  result.register_hook([this, &used](const at::Tensor&) {
    begin();
    repeated_ = used;
    torch::autograd::Engine::get_default_engine().queue_callback([this] { complete(); });
  });
  result.backward();
}

std::optional<GradientReducer::Result> GradientReducer::State::end_step() {
  if (!std::exchange(begun_, false)) return std::nullopt;
  landed_ = false;
  joined_ = false;
  ended_ = true;
  ++steps_;
  Result result;
  result.waited = waited_;
  result.bytes = bytes_;
  if (error_) {
    result.error = error_;
    return result;
  }
  const StepTally tally = message_.tally();
  last_ = tally;
  const int at_work = group_.size() - tally.joined;
  if (at_work > 0 && tally.samples > 0) unit_ = tally.samples / at_work;
  if (!std::exchange(rebuilt_, true)) {
    try {
      reducer_->rebuild_buckets();
    } catch (...) {
      unusable_ = group_.error("preparing buckets");  // reported by the next step
    }
  }
  result.tally = tally;
  return result;
}

GradientReducer::GradientReducer(std::vector<std::pair<std::string, at::Tensor>> parameters,
                                 const ProcessGroup& group, const ReducerOptions& options)
    : state_(std::make_unique<State>(std::move(parameters), group, options)) {}

GradientReducer::~GradientReducer() = default;

void GradientReducer::set_samples(double samples) {
  state_->samples_ = samples;
}

void GradientReducer::set_accumulating(bool on) {
  state_->accumulating_ = on;
}

void GradientReducer::set_stopping() {
  state_->stopping_ = true;
}

void GradientReducer::set_note(std::uint32_t note) {
  state_->note_ = note;
}

void GradientReducer::repeat(const std::vector<bool>& used) {
  state_->repeat(used);
}

const std::vector<bool>& GradientReducer::used() const {
  return state_->used();
}

void GradientReducer::set_shared_buffers(std::vector<at::Tensor> buffers) {
  state_->buffers_.set(std::move(buffers));
}

bool GradientReducer::done() const {
  return state_->begun_;
}

void GradientReducer::contribute(bool joined) {
  state_->contribute(joined);
}

std::optional<GradientReducer::Result> GradientReducer::end_step() {
  return state_->end_step();
}

}  // namespace dpwa::collective
