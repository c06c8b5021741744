#include "adapters/collective/settings.h"

#include <c10/util/Type.h>

#include <typeinfo>

#include "dpwa/config/names.h"

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

std::string settings_words(const CollectiveConfig& config) {
  return "first_bucket_bytes " + std::to_string(config.first_bucket_bytes) + ", bucket_bytes " +
         std::to_string(config.bucket_bytes) + ", compression " +
         name_of(reducer_options(config).compression) + ", average_buffers " +
         (config.average_buffers ? "true" : "false") + ", on_lost_rank " +
         config::name_of(config.on_lost_rank) + ", minority " + config::name_of(config.minority);
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
