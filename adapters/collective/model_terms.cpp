#include "adapters/collective/model_terms.h"

#include <string>

#include "adapters/collective/engine/tensor_form.h"

namespace dpwa::collective {

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

}  // namespace dpwa::collective
