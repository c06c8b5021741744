#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "adapters/common/flat_parameters.h"
#include "adapters/common/host_copies.h"
#include "adapters/kvstore/watched_tensors.h"
#include "adapters/torch_types.h"
#include "dpwa/kvworker/worker_model.h"
#include "dpwa/snapshot/aligned_buffer.h"

namespace dpwa::kvstore {

// A module of LibTorch as a worker of the store has it. Integer buffers stay on the node. Values of
// an accelerator travel by pinned memory and a side stream.
class TorchModel final : public WorkerModel {
 public:
  explicit TorchModel(torch::nn::Module& module);

  const std::vector<at::Tensor>& trained_parameters() const { return trained_; }
  at::Device device() const { return flat_.device(); }

  void check() const override { flat_.check(); }
  std::optional<std::size_t> written() const override { return written_.first(); }
  void know_written() override { written_.know(); }

  Lent value(std::size_t index) override;
  Lent change(std::size_t index) override;
  void remember() override;
  void begin_writes() override;
  void end_writes() override;
  void write(std::size_t index, const Slices& slices) override;

  bool is_frozen(std::size_t trained) const override { return !trained_[trained].requires_grad(); }
  bool has_gradient(std::size_t trained) const override {
    return trained_[trained].grad().defined();
  }
  Lent gradient(std::size_t trained) override;
  Came copy_gradient(std::size_t trained, std::span<std::byte> to) override;
  AlignedBuffer memory(std::size_t bytes) override;
  void take_mean(std::size_t trained, const Slices& mean) override;
  void take_mean(std::size_t trained, std::span<const std::byte> mean) override;
  void drop_gradient(std::size_t trained) override;
  void note_sent(std::size_t trained) override;
  void check_sent() const override { sent_.check(); }
  void forget_sent() override { sent_.clear(); }

 private:
  // Floating-point buffers of one type.
  struct Buffers {
    std::vector<at::Tensor> members;
    at::Tensor value{};  // flat, on their device; the value on the servers
    bool is_new = false;
  };
  void add_parameters(const torch::nn::Module& module);
  void add_buffers_of(const torch::nn::Module& module);
  Lent lend(std::size_t index, const at::Tensor& values);
  // `index`: of the value in whose pinned memory they come.
  void take(std::size_t index, const Slices& slices, at::Tensor to);

  FlatParameters flat_;
  std::vector<at::Tensor> parameters_;
  std::vector<at::Tensor> trained_;
  std::vector<Buffers> buffers_;
  std::vector<at::Tensor> before_;  // by parameter, since remember()
  WrittenWeights written_;
  SentGradients sent_;
  // Of an accelerator:
  AlignedBuffer pinned_;
  std::vector<std::span<std::byte>> places_;  // in it, by value
  std::unique_ptr<HostCopies> copies_;
};

}  // namespace dpwa::kvstore
