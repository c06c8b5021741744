// Built only if LibTorch has NCCL.
#include <ATen/cuda/CUDAContextLight.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>
#include <vector>

#include "adapters/collective/engine/engine.h"
#include "adapters/collective/engine/error.h"
#include "dpwa/collective/signature.h"

namespace dpwa::collective {

namespace {

std::vector<std::uint8_t> identity_of(c10::DeviceIndex gpu) {
  const auto& bytes = at::cuda::getDeviceProperties(gpu)->uuid.bytes;
  return {std::begin(bytes), std::end(bytes)};
}

// Without these LibTorch ends the process by itself some time after a rank is lost. Values that the
// user has set count.
void keep_process_alive() {
  ::setenv("TORCH_NCCL_ASYNC_ERROR_HANDLING", "0", /*overwrite=*/0);
  ::setenv("TORCH_NCCL_ENABLE_MONITORING", "0", /*overwrite=*/0);
}

// Two ranks on one GPU make NCCL fail with an error that names neither.
void require_own_gpu(c10d::Store& store, const GroupOptions& options, c10::DeviceIndex gpu) {
  store.set("gpu of rank " + std::to_string(options.rank), identity_of(gpu));
  std::vector<std::string> gpus;
  for (int rank = 0; rank < options.size; ++rank) {
    const auto bytes = store.get("gpu of rank " + std::to_string(rank));
    gpus.emplace_back(bytes.begin(), bytes.end());
  }
  if (const auto why = shared_gpu(gpus, options.names))
    throw CollectiveError(Failure::mismatch, "forming a group", "nccl", *why);
}

// A group of two back ends: NCCL for tensors on GPUs; Gloo for host memory, such as the comparisons
// before an operation, and for noticing the end of others. `gpu`: of this process; the thread may
// have another current device.
Connection form_nccl(const Engine& gloo, c10::DeviceIndex gpu,
                     const c10::intrusive_ptr<c10d::Store>& store, const GroupOptions& options) {
  const c10::cuda::CUDAGuard on_gpu(gpu);
  const auto own_keys = c10::make_intrusive<c10d::PrefixStore>("dpwa/nccl", store);
  require_own_gpu(*own_keys, options, gpu);
  auto connection = gloo.form(c10::make_intrusive<c10d::PrefixStore>("dpwa/gloo", store), options);
  auto nccl = c10d::ProcessGroupNCCL::Options::create();
  nccl->timeout = options.timeout;
  auto backend =
      c10::make_intrusive<c10d::ProcessGroupNCCL>(own_keys, options.rank, options.size, nccl);
  connection.group->setBackend(c10::DeviceType::CUDA, c10d::ProcessGroup::BackendType::NCCL,
                               c10::intrusive_ptr<c10d::Backend>(backend));
  connection.stream_ordered = true;
  return connection;
}

// The current GPU of the calling thread is that of the process.
Engine make_nccl(const Engine& gloo) {
  keep_process_alive();
  if (c10::cuda::device_count() == 0)
    throw CollectiveError(Failure::usage, "choosing an engine", "nccl",
                          "this process sees no GPU; accepted: engine auto, dpwa or gloo");
  return {.name = "nccl",
          .form = [gloo, gpu = c10::cuda::current_device()](
                      const c10::intrusive_ptr<c10d::Store>& store, const GroupOptions& options) {
            return form_nccl(gloo, gpu, store, options);
          }};
}

}  // namespace

EngineSupport nccl_engine() {
  const EngineSupport gloo = gloo_engine();
  return {EngineKind::nccl, "nccl", gloo.absent,
          [make_gloo = gloo.make] { return make_nccl(make_gloo()); }};
}

}  // namespace dpwa::collective
