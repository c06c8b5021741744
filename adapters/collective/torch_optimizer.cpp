#include "adapters/collective/torch_optimizer.h"

#include <c10/util/Type.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <cstdio>
#include <tuple>
#include <typeinfo>
#include <utility>

#include "adapters/common/training_state.h"
#include "dpwa/base/checksum.h"
#include "dpwa/config/text.h"

namespace dpwa::collective {
namespace {

std::string number(double value) {
  return config::number_text(value);
}

// The hyper-parameters of the optimizers of LibTorch; nothing for others.
std::string hyper_parameters(const torch::optim::OptimizerOptions& options) {
  using namespace torch::optim;
  const auto decay = [](double value) { return ", weight decay " + number(value); };
  const auto moments = [](const auto& adam) {
    return ", betas " + number(std::get<0>(adam.betas())) + " and " +
           number(std::get<1>(adam.betas())) + ", eps " + number(adam.eps()) +
           (adam.amsgrad() ? ", amsgrad" : "");
  };
  if (const auto* sgd = dynamic_cast<const SGDOptions*>(&options))
    return ", momentum " + number(sgd->momentum()) + ", dampening " + number(sgd->dampening()) +
           decay(sgd->weight_decay()) + (sgd->nesterov() ? ", nesterov" : "");
  if (const auto* adam = dynamic_cast<const AdamOptions*>(&options))
    return moments(*adam) + decay(adam->weight_decay());
  if (const auto* adamw = dynamic_cast<const AdamWOptions*>(&options))
    return moments(*adamw) + decay(adamw->weight_decay());
  if (const auto* rms = dynamic_cast<const RMSpropOptions*>(&options))
    return ", alpha " + number(rms->alpha()) + ", eps " + number(rms->eps()) + ", momentum " +
           number(rms->momentum()) + decay(rms->weight_decay()) +
           (rms->centered() ? ", centered" : "");
  if (const auto* ada = dynamic_cast<const AdagradOptions*>(&options))
    return ", learning rate decay " + number(ada->lr_decay()) + ", eps " + number(ada->eps()) +
           decay(ada->weight_decay());
  return "";
}

// Numbers and tensors in one checksum.
class StateSum {
 public:
  void add(std::int64_t number) { add_bytes(&number, sizeof number); }
  void add(const at::Tensor& tensor) {
    add(static_cast<std::int64_t>(tensor.defined() ? tensor.nbytes() : 0));
    if (!tensor.defined()) return;
    const at::Tensor values = tensor.detach().cpu().contiguous();
    add_bytes(values.const_data_ptr(), values.nbytes());
  }
  template <class... Parts>
  void add_all(const Parts&... parts) {
    (add(parts), ...);
  }
  std::uint32_t value() const { return sum_.value(); }

 private:
  void add_bytes(const void* data, std::size_t size) {
    sum_.update({static_cast<const std::byte*>(data), size});
  }
  Crc32c sum_;
};

// What the optimizers of LibTorch remember of a parameter; false for others.
bool add_state(StateSum& sum, const torch::optim::OptimizerParamState& state) {
  using namespace torch::optim;
  const auto add_adam = [&sum](const auto& adam) {
    sum.add_all(adam.step(), adam.exp_avg(), adam.exp_avg_sq(), adam.max_exp_avg_sq());
    return true;
  };
  if (const auto* sgd = dynamic_cast<const SGDParamState*>(&state)) {
    sum.add(sgd->momentum_buffer());
    return true;
  }
  if (const auto* adam = dynamic_cast<const AdamParamState*>(&state)) return add_adam(*adam);
  if (const auto* adamw = dynamic_cast<const AdamWParamState*>(&state)) return add_adam(*adamw);
  if (const auto* rms = dynamic_cast<const RMSpropParamState*>(&state)) {
    sum.add_all(rms->step(), rms->square_avg(), rms->momentum_buffer(), rms->grad_avg());
    return true;
  }
  if (const auto* ada = dynamic_cast<const AdagradParamState*>(&state)) {
    sum.add_all(ada->step(), ada->sum());
    return true;
  }
  return false;
}

}  // namespace

Signature TorchOptimizer::words() const {
  Signature signature;
  signature.operation = "step with " + c10::demangle(typeid(optimizer_).name());
  for (const auto& group : optimizer_.param_groups()) {
    signature.entries.push_back({"parameter group " + std::to_string(signature.entries.size() + 1),
                                 "learning rate " + number(group.options().get_lr()) + ", " +
                                     std::to_string(group.params().size()) + " parameters" +
                                     hyper_parameters(group.options()),
                                 true});
  }
  return signature;
}

std::string TorchOptimizer::state_words() const {
  StateSum sum;
  for (const auto& group : optimizer_.param_groups()) {
    for (const auto& parameter : group.params()) {
      const auto found = optimizer_.state().find(parameter.unsafeGetTensorImpl());
      const bool has_state = found != optimizer_.state().end();
      sum.add(std::int64_t{has_state});
      if (has_state && !add_state(sum, *found->second)) return "not compared";
    }
  }
  char text[32];
  std::snprintf(text, sizeof text, "checksum %08x", sum.value());
  return text;
}

std::string TorchOptimizer::save() const {
  return saved_state(optimizer_);
}

void TorchOptimizer::load(const std::string& saved) {
  load_state(optimizer_, saved);
}

}  // namespace dpwa::collective
