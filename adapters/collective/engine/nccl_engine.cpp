// Built only if LibTorch has NCCL.
#include <memory>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>
#include <utility>

#include "adapters/collective/engine/engine.h"

namespace dpwa::collective::nccl_engine {

namespace {

// A group of two back ends: NCCL for tensors on GPUs; Gloo for host memory, such as the comparisons
// before an operation, and for noticing the end of others.
class NcclEngine final : public Engine {
 public:
  explicit NcclEngine(std::unique_ptr<Engine> gloo) : gloo_(std::move(gloo)) {}
  const std::string& name() const override { return name_; }

  Connection form(const c10::intrusive_ptr<c10d::Store>& store,
                  const GroupOptions& options) const override {
    auto connection =
        gloo_->form(c10::make_intrusive<c10d::PrefixStore>("dpwa/gloo", store), options);
    auto nccl = c10d::ProcessGroupNCCL::Options::create();
    nccl->timeout = options.timeout;
    auto backend = c10::make_intrusive<c10d::ProcessGroupNCCL>(
        c10::make_intrusive<c10d::PrefixStore>("dpwa/nccl", store), options.rank, options.size,
        nccl);
    connection.group->setBackend(c10::DeviceType::CUDA, c10d::ProcessGroup::BackendType::NCCL,
                                 c10::intrusive_ptr<c10d::Backend>(backend));
    return connection;
  }

 private:
  std::string name_ = "nccl";
  std::unique_ptr<Engine> gloo_;
};

}  // namespace

std::string absent() {
  return gloo_engine::absent();
}

std::unique_ptr<Engine> make() {
  auto gloo = gloo_engine::make();
  return gloo ? std::make_unique<NcclEngine>(std::move(gloo)) : nullptr;
}

}  // namespace dpwa::collective::nccl_engine
