#pragma once

// What interfaces take of LibTorch by reference, without its headers: torch/nn/module.h alone reads
// 5,000 of them. A source includes those of the types that it uses.

namespace at {
class Tensor;
}

namespace torch {
using at::Tensor;
}

namespace torch::nn {
class Module;
}

namespace torch::optim {
class Optimizer;
class OptimizerParamState;
}  // namespace torch::optim
