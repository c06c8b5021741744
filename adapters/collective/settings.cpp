#include "adapters/collective/settings.h"

#include <c10/util/Type.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <tuple>
#include <typeinfo>

#include "dpwa/config/text.h"

namespace dpwa::collective {
namespace {

std::string number(double value) {
  return config::number_text(value);
}

// Of the optimizers of LibTorch; of others nothing.
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

}  // namespace

ReducerOptions reducer_options(const CollectiveConfig& config) {
  ReducerOptions options;
  options.first_bucket_bytes = static_cast<std::int64_t>(config.first_bucket_bytes);
  options.bucket_bytes = static_cast<std::int64_t>(config.bucket_bytes);
  options.average_buffers = config.average_buffers;
  switch (config.compression) {
    case GradientCompression::none:
      break;
    case GradientCompression::fp16:
      options.compression = Compression::fp16;
      break;
    case GradientCompression::bf16:
      options.compression = Compression::bf16;
      break;
  }
  return options;
}

Signature optimizer_words(const torch::optim::Optimizer& optimizer) {
  Signature signature;
  signature.operation = "step with " + c10::demangle(typeid(optimizer).name());
  for (const auto& group : optimizer.param_groups()) {
    signature.entries.push_back({"parameter group " + std::to_string(signature.entries.size() + 1),
                                 "learning rate " + number(group.options().get_lr()) + ", " +
                                     std::to_string(group.params().size()) + " parameters" +
                                     hyper_parameters(group.options())});
  }
  return signature;
}

}  // namespace dpwa::collective
