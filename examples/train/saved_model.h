#pragma once

#include <torch/nn/module.h>

#include <filesystem>
#include <string>

#include "dpwa/config/config.h"
#include "examples/train/options.h"
#include "examples/train/plan.h"
#include "examples/train/report.h"

namespace dpwa::train {

// Parameters and buffers under one name space; names cannot collide within a module.
torch::OrderedDict<std::string, torch::Tensor> tensors_of(const torch::nn::Module& model);

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
