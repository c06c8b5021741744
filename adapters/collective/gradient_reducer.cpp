#include "adapters/collective/gradient_reducer.h"

#include <ATen/core/grad_mode.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/div.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scalar_tensor.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <exception>
#include <stdexcept>
#include <torch/csrc/distributed/c10d/comm.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>
#include <utility>

#include "adapters/collective/engine/exchange.h"
#include "adapters/collective/engine/lent_tensor.h"
#include "adapters/collective/engine/sum_in_halves.h"
#include "adapters/common/graph_capture.h"
#include "adapters/common/module_tensors.h"
#include "adapters/common/tensor_checksum.h"
#include "dpwa/rules/compared_steps.h"
#include "dpwa/rules/second_pass.h"

namespace dpwa::collective {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr auto averaging = "averaging gradients";

// The hook that c10d::Reducer calls for each bucket of gradients. The Reducer asks for a future per
// bucket and waits for it at the end of backward(). Our future is complete at once; the wait
// happens in `landed`, which reads the result and does not throw.
class BucketHook final : public c10d::CommHookInterface {
 public:
  // `launch`: sends a bucket that is full; its place in the order of launches is what `landed`, at
  // the end of the pass, gets to give the tensor with the mean.
  BucketHook(std::function<std::size_t(c10d::GradBucket&)> launch,
             std::function<at::Tensor(std::size_t)> landed)
      : launch_(std::move(launch)), landed_(std::move(landed)) {}

  c10::intrusive_ptr<c10::ivalue::Future> runHook(c10d::GradBucket& bucket) override {
    auto future = c10::make_intrusive<c10::ivalue::Future>(c10::IntType::get());
    future->markCompleted(static_cast<std::int64_t>(launch_(bucket)));
    return future;
  }
  at::Tensor parseHookResult(const c10::IValue& result) override {
    return landed_(static_cast<std::size_t>(result.toInt()));
  }

 private:
  std::function<std::size_t(c10d::GradBucket&)> launch_;
  std::function<at::Tensor(std::size_t)> landed_;
};

// Of the bucket that fills first, as in PyTorch's DDP: its exchange begins early in backward().
constexpr std::uint64_t first_bucket_bytes = std::uint64_t{1} << 20;

std::int64_t limit_of(std::uint64_t bytes) {
  return static_cast<std::int64_t>(std::max<std::uint64_t>(1, bytes));
}

std::int64_t first_limit_of(const GradientOptions& options) {
  return limit_of(std::min(first_bucket_bytes, options.bucket_bytes));
}

// Buckets in the order in which backward() is likely to fill them: the last parameters first.
std::vector<std::vector<std::size_t>> buckets_of(const std::vector<at::Tensor>& parameters,
                                                 const GradientOptions& options) {
  std::vector<at::Tensor> reversed(parameters.rbegin(), parameters.rend());
  auto [buckets, sizes] = c10d::compute_bucket_assignment_by_size(
      reversed, {static_cast<std::size_t>(first_limit_of(options)),
                 static_cast<std::size_t>(limit_of(options.bucket_bytes))});
  for (auto& bucket : buckets) {
    for (auto& index : bucket) index = parameters.size() - 1 - index;
  }
  return buckets;
}

// The views that a bucket gives are contiguous; in it lie gradients in the order of their weights.
void in_order_of(const std::vector<at::Tensor>& parameters, std::vector<at::Tensor>& views) {
  for (std::size_t i = 0; i < views.size(); ++i)
    if (!parameters[i].is_contiguous())
      views[i] = views[i].as_strided(parameters[i].sizes(), parameters[i].strides());
}

// c10d's Reducer, configured for GradientReducer: every full bucket goes to `hook`, and nothing is
// copied back into the gradients. Passes on exceptions of c10d.
std::unique_ptr<c10d::Reducer> make_c10d_reducer(const std::vector<at::Tensor>& parameters,
                                                 const std::vector<std::string>& names,
                                                 const ProcessGroup& group,
                                                 const GradientOptions& options,
                                                 std::unique_ptr<c10d::CommHookInterface> hook) {
  std::unordered_map<std::size_t, std::string> names_by_index;
  for (std::size_t i = 0; i < names.size(); ++i) names_by_index[i] = names[i];
  auto reducer = std::make_unique<c10d::Reducer>(
      parameters, buckets_of(parameters, options), group.c10d(),
      std::vector<bool>(parameters.size(), false), limit_of(options.bucket_bytes),
      /*find_unused_parameters=*/false, /*gradient_as_bucket_view=*/false, names_by_index,
      first_limit_of(options), /*skip_all_reduce_unused_params=*/false,
      /*use_python_reducer=*/false, std::vector<std::int64_t>{});
  reducer->register_comm_hook(std::move(hook));
  // GradientReducer writes the gradients, and scales them in the same pass.
  reducer->set_optimizer_in_backward();
  return reducer;
}

}  // namespace

struct GradientReducer::Flight {
  at::Tensor buffer;
  std::vector<at::Tensor> views;  // of the buffer, for each parameter
  std::vector<at::Tensor> parameters;
  c10::intrusive_ptr<c10d::Work> work;  // none with a compression: the thread does it
};

GradientReducer::GradientReducer(const torch::nn::Module& module, const ProcessGroup& group,
                                 const GradientOptions& options, WaitWords waits,
                                 bool sends_checksums)
    : group_(group),
      options_(options),
      wait_words_(std::move(waits)),
      sends_checksums_(sends_checksums),
      waits_(group),
      buffers_(module, options.average_buffers) {
  for (auto& [name, tensor] : trained_parameters(module)) {
    names_.push_back(name);
    parameters_.push_back(tensor);
  }
  if (options.compression != Compression::none)
    thread_ = std::make_unique<collectives::OperationQueue>();
  share_ = sum_share(group.size(), std::ranges::any_of(parameters_, [](const at::Tensor& each) {
                       return each.scalar_type() == at::kHalf;
                     }));
  unit_ = share_;
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

GradientReducer::~GradientReducer() {
  thread_.reset();
  hooks_.reset();
  try {
    if (reducer_) reducer_->remove_autograd_hooks();
  } catch (const std::exception&) {
    // Nothing can call it any more.
  }
}

void GradientReducer::fired(std::size_t index) {
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

void GradientReducer::require_no_second_pass() const {
  if (!accumulating_ && landed_) refuse_second_pass();
}

void GradientReducer::begin() {
  require_no_capture(parameters_.front().device());
  begun_ = true;
  weight_ = samples_ / unit_;
  flights_.clear();
  exchanges_.clear();
  others_.clear();
  told_ = false;
  error_ = unusable_;
  bytes_ = 0;
  std::fill(fired_.begin(), fired_.end(), false);
  if (!unusable_) reducer_->prepare_for_backward({});
}

void GradientReducer::complete() {
  if (repeated_) used_ = *std::exchange(repeated_, std::nullopt);
  for (std::size_t i = 0; i < fired_.size(); ++i) {
    if (!fired_[i] && !unusable_) reducer_->autograd_hook(i);
  }
  if (!told_) tell();  // no bucket was launched
}

// Sent just before the last bucket, when the used parameters are known. Behind that bucket it would
// wait until a thread of the engine has transferred the bucket.
void GradientReducer::tell() {
  told_ = true;
  const at::NoGradGuard no_grad;
  OwnStep own{samples_, joined_, stopping_, note_, {}};
  // One that has joined makes no steps any more.
  if (sends_checksums_ && !joined_ && compares_weights_at(steps_))
    own.weights = checksum_of(parameters_);
  message_.fill(group_, own, used_);
  if (error_) return;
  buffers_.fill(std::max(0, last_.first_at_work));
  try {
    if (thread_) {
      on_thread(message_.tensor().nbytes(), [this] { send_message(); });
    } else {
      send_message();
    }
  } catch (...) {
    fail();
  }
}

void GradientReducer::send_message() {
  message_.send(group_, others_);
  buffers_.send(group_, others_);
}

// On the stream of the backward pass, so that all comes in the order of the calls.
void GradientReducer::on_thread(std::size_t bytes, std::function<void()> exchange) {
  const at::Device device = parameters_.front().device();
  const auto stream = c10::impl::VirtualGuardImpl(device.type()).getStream(device);
  auto on_stream = [stream, exchange = std::move(exchange)] {
    const c10::StreamGuard in_order(stream);
    exchange();
  };
  exchanges_.push_back(std::make_shared<collectives::Operation>(std::move(on_stream), bytes));
  thread_->add(exchanges_.back(), /*prompt=*/true);
}

std::size_t GradientReducer::launch(c10d::GradBucket& bucket) {
  const at::NoGradGuard no_grad;
  if (bucket.isLast()) tell();
  Flight flight{bucket.getBuffer(), bucket.getGradients(), bucket.getParameters(), {}};
  in_order_of(flight.parameters, flight.views);
  if (!error_) {
    try {
      if (!thread_) lend(*group_.c10d(), flight.buffer);  // the first time
      if (group_.size() > 1) bytes_ += thread_ ? 2 * flight.buffer.numel() : flight.buffer.nbytes();
      if (weight_ != 1) flight.buffer.mul_(weight_);
      std::vector<at::Tensor> list{flight.buffer};
      if (thread_) {
        on_thread(flight.buffer.nbytes(), [this, buffer = flight.buffer] {
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

at::Tensor GradientReducer::landed(std::size_t bucket) {
  if (!std::exchange(landed_, true)) wait_for_all();
  return flights_.at(bucket).buffer;
}

void GradientReducer::wait_for_all() {
  const at::NoGradGuard no_grad;
  const auto from = SteadyClock::now();
  if (thread_) {
    wait_words_.begin(words_for(0));
    for (const auto& exchange : exchanges_) {
      try {
        thread_->finish(*exchange);
        exchange->rethrow();
      } catch (...) {
        fail();  // so do those after it
      }
    }
  }
  const auto take_note = [this](std::optional<CollectiveError> problem) {
    if (problem && !error_) error_ = std::move(problem);
  };
  if (!waits_.empty()) {
    wait_words_.begin("gradients of the step before");
    take_note(waits_.end_step_before(averaging));
  }
  std::vector<at::Tensor> in_use{message_.tensor(), buffers_.tensor()};
  for (const auto& flight : flights_) in_use.push_back(flight.buffer);
  const auto wait_for = [&](const c10::intrusive_ptr<c10d::Work>& work, const at::Tensor& own) {
    if (!work) return;
    if (group_.is_stream_ordered(own.device())) {
      try {
        waits_.add(work, own);
      } catch (...) {
        fail();
      }
      return;
    }
    std::vector<at::Tensor> tensors{own};
    tensors.insert(tensors.end(), in_use.begin(), in_use.end());
    take_note(await_work(group_, work, averaging, tensors));
  };
  for (std::size_t i = 0; i < flights_.size(); ++i) {
    wait_words_.begin(words_for(i));
    wait_for(flights_[i].work, flights_[i].buffer);
  }
  for (const auto& [work, own] : others_) wait_for(work, own);
  waits_.end_step();
  waited_ = SteadyClock::now() - from;
  wait_words_.end();
  if (error_) return;
  buffers_.take(group_);
  const double total = message_.samples() / unit_;
  write_gradients(total > 0 ? total : 1);  // no member had a batch: zeros
}

// Called once all have arrived. Until then this member may need .grad to repeat the step.
void GradientReducer::write_gradients(double total) {
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

std::string GradientReducer::words_for(std::size_t bucket) const {
  const auto& first = flights_[bucket].parameters.front();
  return "gradients, bucket " + std::to_string(bucket + 1) + " of " +
         std::to_string(flights_.size()) + ", from " +
         names_[places_.at(first.unsafeGetTensorImpl())] + " on";
}

void GradientReducer::fail() {
  if (!error_) error_ = group_.error(averaging);
}

void GradientReducer::contribute(bool joined) {
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
void GradientReducer::exchange_without_backward(const std::vector<bool>& used) {
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

StepResult GradientReducer::end_step() {
  begun_ = false;
  landed_ = false;
  joined_ = false;
  ended_ = true;
  ++steps_;
  if (error_) return {{}, error_, waited_, bytes_};
  const StepTally tally = message_.tally();
  last_ = tally;
  const int at_work = group_.size() - tally.joined;
  if (at_work > 0 && tally.samples > 0) unit_ = tally.samples / at_work * share_;
  if (!std::exchange(rebuilt_, true)) {
    try {
      reducer_->rebuild_buckets();
    } catch (...) {
      unusable_ = group_.error("preparing buckets");  // reported by the next step
    }
  }
  return {tally, {}, waited_, bytes_};
}

}  // namespace dpwa::collective
