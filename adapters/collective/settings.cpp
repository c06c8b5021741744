#include "adapters/collective/settings.h"

#include <c10/util/Type.h>

#include <typeinfo>

namespace dpwa::collective {

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
                                 "learning rate " + std::to_string(group.options().get_lr()) +
                                     ", " + std::to_string(group.params().size()) + " parameters"});
  }
  return signature;
}

}  // namespace dpwa::collective
