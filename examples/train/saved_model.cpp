#include "examples/train/saved_model.h"

#include <torch/types.h>

#include <exception>
#include <map>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "dpwa/base/atomic_file.h"
#include "dpwa/base/plain_text.h"
#include "dpwa/base/version.h"
#include "dpwa/config/config.h"
#include "dpwa/config/text.h"
#include "dpwa/log/log.h"
#include "examples/train/safetensors.h"

namespace dpwa::train {
namespace {

std::string_view dtype_of(const torch::Tensor& tensor, const std::string& name) {
  switch (tensor.scalar_type()) {
    case torch::kDouble:
      return "F64";
    case torch::kFloat:
      return "F32";
    case torch::kHalf:
      return "F16";
    case torch::kBFloat16:
      return "BF16";
    case torch::kLong:
      return "I64";
    case torch::kInt:
      return "I32";
    case torch::kShort:
      return "I16";
    case torch::kChar:
      return "I8";
    case torch::kByte:
      return "U8";
    case torch::kBool:
      return "BOOL";
    default:
      throw std::runtime_error("tensor '" + name + "' has a dtype that safetensors files lack");
  }
}

// Writes the parameters and buffers of `model` as a safetensors file, under their names in the
// module. Throws std::system_error that names the file, std::bad_alloc or c10::Error when memory is
// refused, and std::runtime_error for a tensor of a dtype that the format lacks.
void save_model(const std::filesystem::path& file, const torch::nn::Module& model,
                const std::map<std::string, std::string>& metadata) {
  std::vector<torch::Tensor> held;  // in host memory, until they are written
  std::vector<StoredTensor> stored;
  for (const auto& item : tensors_of(model)) {
    const auto& tensor = held.emplace_back(item.value().detach().to(c10::kCPU).contiguous());
    stored.push_back({item.key(),
                      dtype_of(tensor, item.key()),
                      static_cast<std::uint64_t>(tensor.element_size()),
                      tensor.sizes().vec(),
                      {static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()}});
  }
  write_safetensors(file, std::move(stored), metadata);
}

}  // namespace

torch::OrderedDict<std::string, torch::Tensor> tensors_of(const torch::nn::Module& model) {
  auto tensors = model.named_parameters();
  for (const auto& buffer : model.named_buffers()) tensors.insert(buffer.key(), buffer.value());
  return tensors;
}

ModelFiles::ModelFiles(const TrainOptions& options, const Config& config)
    : cluster_(config.cluster) {
  if (options.save.empty()) return;
  paths_ = model_paths(options, config);
  const std::filesystem::path& file = paths_.averaged.empty() ? paths_.own : paths_.averaged;
  const auto refuse = [&file](const std::string& why) {
    throw ConfigError("--save: '" + file.string() + "' cannot be written: " + why +
                      "; accepted: a file in a folder that can");
  };
  std::error_code missing;
  const auto status = std::filesystem::status(file, missing);
  if (is_directory(status)) refuse("it is a folder");
  if (exists(status) && !is_regular_file(status)) refuse("it is not a regular file");
  try {
    std::filesystem::create_directories(folder_of(file));
    const AtomicFile probe(file);
  } catch (const std::system_error& error) {
    refuse(error.code().message());
  }
}

bool ModelFiles::write_own(const torch::nn::Module& model, const RunResult& result) {
  return paths_.own.empty() || write(paths_.own, "own", model, result);
}

bool ModelFiles::write_averaged(const torch::nn::Module& model, const RunResult& result) {
  if (paths_.averaged.empty()) return true;
  has_average_ = write(paths_.averaged, "averaged", model, result);
  return has_average_;
}

bool ModelFiles::write(const std::filesystem::path& file, const char* weights,
                       const torch::nn::Module& model, const RunResult& result) {
  std::map<std::string, std::string> metadata = {{"format", "pt"},  // some loaders ask for it
                                                 {"dpwa", std::string(version())},
                                                 {"weights", weights},
                                                 {"node", result.identity.node},
                                                 {"cluster", cluster_},
                                                 {"dataset", result.identity.data},
                                                 {"split", result.identity.split},
                                                 {"model", result.identity.model},
                                                 {"step", std::to_string(result.position.step)},
                                                 {"clock", config::number_text(result.clock)}};
  if (result.averaged && result.averaged->participants > 0)
    metadata["participants"] = std::to_string(result.averaged->participants);
  try {
    save_model(file, model, metadata);
  } catch (const std::exception& error) {  // the disk, or memory
    log(LogLevel::error, "train", "no model written: " + one_line(error));
    return false;
  }
  written_ += (written_.empty() ? "" : ", ") + std::string(weights) + " model in " + file.string();
  return true;
}

std::string ModelFiles::words() const {
  if (paths_.averaged.empty() || has_average_) return written_;
  return (written_.empty() ? "" : written_ + ", ") + "no averaged model for " +
         paths_.averaged.string();
}

}  // namespace dpwa::train
