#include "adapters/collective/model_terms.h"

#include <c10/util/Type.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <typeinfo>

#include "adapters/collective/engine/tensor_form.h"
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

}  // namespace

std::vector<Signature::Entry> tensors_of(const torch::nn::Module& model) {
  std::vector<Signature::Entry> tensors;
  for (const auto& item : model.named_parameters()) {
    const std::string trained = item.value().requires_grad() ? "" : ", not trained";
    tensors.push_back({item.key(), form_of(item.value()) + trained});
  }
  for (const auto& item : model.named_buffers())
    tensors.push_back({item.key(), form_of(item.value())});
  return tensors;
}

Terms model_terms(const torch::nn::Module& model) {
  std::string text;
  const auto tensors = tensors_of(model);
  for (const auto& tensor : tensors) text += tensor.name + ' ' + tensor.form + '\n';
  return {{"model",
           std::to_string(tensors.size()) + " tensors, hash " + std::to_string(hash_of(text))}};
}

std::vector<std::pair<std::string, at::Tensor>> trained_parameters(torch::nn::Module& module) {
  std::vector<std::pair<std::string, at::Tensor>> trained;
  for (const auto& item : module.named_parameters()) {
    const bool known = std::ranges::any_of(
        trained, [&](const auto& one) { return one.second.is_same(item.value()); });
    if (item.value().requires_grad() && !known) trained.emplace_back(item.key(), item.value());
  }
  return trained;
}

std::vector<at::Tensor> shared_buffers(torch::nn::Module& module) {
  std::vector<at::Tensor> shared;
  for (const auto& buffer : module.buffers()) {
    if (buffer.is_floating_point() && buffer.numel() > 0) shared.push_back(buffer);
  }
  return shared;
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
