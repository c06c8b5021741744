#pragma once

#include <torch/nn/module.h>

#include <filesystem>
#include <map>
#include <string>

#include "dpwa/config/config.h"
#include "examples/train/options.h"
#include "examples/train/plan.h"
#include "examples/train/report.h"

namespace dpwa::train {

// Parameters and buffers under one name space; names cannot collide within a module.
torch::OrderedDict<std::string, torch::Tensor> tensors_of(const torch::nn::Module& model);

// Writes a safetensors file atomically, readable by its owner alone. Layout:
//    0  8  bytes of the header, little-endian
//    8     header: JSON, {"__metadata__": {"key": "value", ...},
//            "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, ...},
//          with spaces at its end up to a multiple of 8 bytes
//          data of the tensors without gaps, those of large elements first, so each one is aligned;
//          data_offsets count from here
// Throws std::system_error that names the file, std::bad_alloc or c10::Error when memory is
// refused, and std::runtime_error for a tensor of a dtype that the format lacks.
void write_safetensors(const std::filesystem::path& file,
                       const torch::OrderedDict<std::string, torch::Tensor>& tensors,
                       const std::map<std::string, std::string>& metadata);

// The files of --save of one node; without that option nothing is written. One owner, one thread.
class ModelFiles {
 public:
  // Makes their folder. Throws ConfigError unless they can be written.
  ModelFiles(const TrainOptions& options, const Config& config);

  // The model of the last step, and the model after finish() if it is an average. False: not
  // written, which is logged.
  bool write_own(const torch::nn::Module& model, const RunResult& result);
  bool write_averaged(const torch::nn::Module& model, const RunResult& result);
  // What was written, for the last line of the program; empty without --save.
  std::string words() const;

 private:
  bool write(const std::filesystem::path& file, const char* weights, const torch::nn::Module& model,
             const RunResult& result);

  const std::string cluster_;
  ModelPaths paths_;
  std::string written_;
  bool has_average_ = false;
};

}  // namespace dpwa::train
