#include "examples/train/saved_model.h"

#include <torch/types.h>

#include <algorithm>
#include <boost/endian/conversion.hpp>
#include <cstdint>
#include <exception>
#include <nlohmann/json.hpp>
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
#include "examples/train/files.h"

namespace dpwa::train {
namespace {

constexpr std::pair<at::ScalarType, std::string_view> dtypes[] = {
    {at::kDouble, "F64"}, {at::kFloat, "F32"}, {at::kHalf, "F16"},  {at::kBFloat16, "BF16"},
    {at::kLong, "I64"},   {at::kInt, "I32"},   {at::kShort, "I16"}, {at::kChar, "I8"},
    {at::kByte, "U8"},    {at::kBool, "BOOL"}};

std::string_view dtype_of(const torch::Tensor& tensor, const std::string& name) {
  for (const auto& [type, word] : dtypes)
    if (type == tensor.scalar_type()) return word;
  throw std::runtime_error("tensor '" + name + "' has a dtype that safetensors files lack");
}

}  // namespace

torch::OrderedDict<std::string, torch::Tensor> tensors_of(const torch::nn::Module& model) {
  auto tensors = model.named_parameters();
  for (const auto& buffer : model.named_buffers()) tensors.insert(buffer.key(), buffer.value());
  return tensors;
}

void write_safetensors(const std::filesystem::path& file,
                       const torch::OrderedDict<std::string, torch::Tensor>& tensors,
                       const std::map<std::string, std::string>& metadata) {
  std::vector<std::pair<std::string, torch::Tensor>> stored;  // in host memory
  for (const auto& item : tensors)
    stored.emplace_back(item.key(), item.value().detach().to(c10::kCPU).contiguous());
  std::ranges::sort(stored, {}, [](const auto& item) {
    return std::pair(-static_cast<std::int64_t>(item.second.element_size()), item.first);
  });
  nlohmann::ordered_json header;
  header["__metadata__"] = metadata;
  std::vector<std::string_view> parts(2);
  std::uint64_t begin = 0;
  for (const auto& [name, tensor] : stored) {
    const std::uint64_t end = begin + tensor.nbytes();
    header[name] = {{"dtype", dtype_of(tensor, name)},
                    {"shape", tensor.sizes().vec()},
                    {"data_offsets", {begin, end}}};
    parts.emplace_back(static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes());
    begin = end;
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  std::string size(8, '\0');
  boost::endian::store_little_u64(reinterpret_cast<unsigned char*>(size.data()), text.size());
  parts[0] = size;
  parts[1] = text;
  write_file_atomically(file, parts, private_mode);
}

ModelFiles::ModelFiles(const TrainOptions& options, const Config& config)
    : cluster_(config.cluster) {
  if (options.save.empty()) return;
  paths_ = model_paths(options.save, config, config.self);
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
    write_safetensors(file, tensors_of(model), metadata);
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
