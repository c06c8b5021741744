#include <ATen/Dispatch.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/full_like.h>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/collective/engine/operations.h"
#include "adapters/collective/engine/tensor_form.h"
#include "dpwa/collective/agreement.h"

namespace dpwa::collective {

namespace {

constexpr std::string_view reduces = "allreduce ";
constexpr std::string_view broadcast_from = "broadcast from rank ";

// Zeros of the tensors of an operation. Throws CollectiveError if one cannot be made here.
std::vector<NamedTensor> zeros_for(const Signature& signature, const ProcessGroup& group) {
  std::vector<NamedTensor> tensors;
  for (const auto& [name, form, setting] : signature.entries) {
    tensors.push_back({name, zeros_of(form)});
    if (!tensors.back().tensor.defined())
      throw CollectiveError(
          Failure::usage, "join", group.engine(),
          "cannot take part in " + signature.operation + " of '" + name + "' " + form);
  }
  return tensors;
}

// The value that does not count in a minimum or maximum.
at::Tensor neutral(const at::Tensor& like, Reduction reduction) {
  if (reduction != Reduction::min && reduction != Reduction::max) return like;
  const bool least = reduction == Reduction::min;
  return AT_DISPATCH_ALL_TYPES_AND3(
      at::kHalf, at::kBFloat16, at::kBool, like.scalar_type(), "join", [&] {
        using Limits = std::numeric_limits<scalar_t>;
        if constexpr (Limits::has_infinity)
          return at::full_like(like, least ? Limits::infinity() : -Limits::infinity());
        else
          return at::full_like(like, least ? Limits::max() : Limits::lowest());
      });
}

}  // namespace

int Operations::join() {
  const at::NoGradGuard no_grad;
  for (std::int64_t answered = 0;; ++answered) {
    const Announced announced = agree_as_joined(group_, answered);
    if (announced.text.empty()) return announced.last;
    answer(announced.text, announced.payloads);
  }
}

void Operations::answer(const std::string& text, const std::vector<std::int64_t>& payloads) {
  const Signature signature = Signature::parse(text);
  const std::string& operation = signature.operation;
  const std::vector<NamedTensor> tensors = zeros_for(signature, group_);
  if (operation == "barrier") return;
  const std::string title = operation + (tensors.empty() ? "" : " '" + tensors.front().name + "'");
  if (operation.starts_with(reduces)) {
    ReduceOptions options = reduce_options_of(operation.substr(reduces.size()));
    options.prescale = 1;  // of its own tensors, which stay what they are
    std::vector<NamedTensor> own;
    for (const auto& [name, zeros] : tensors)
      own.push_back({name, neutral(zeros, options.reduction)});
    launch(own, options).wait();
  } else if (operation == "allgather") {
    gather_rows(title, tensors.front().tensor, payloads);
  } else if (operation.starts_with(broadcast_from)) {
    receive(title, tensors.front().tensor, std::stoi(operation.substr(broadcast_from.size())),
            payloads);
  } else {
    const auto end_of_word = operation.find(' ');
    require_at_work(group_, operation.substr(0, end_of_word) + title.substr(operation.size()),
                    payloads);
  }
}

}  // namespace dpwa::collective
