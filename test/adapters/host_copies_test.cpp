#include "adapters/common/host_copies.h"

#include <torch/types.h>

#include <cstddef>
#include <vector>

#include "test/adapters/doctest_with_torch.h"
#include "test/adapters/fake_accelerator.h"

namespace dpwa {
namespace {

using test::FakeAccelerator;

std::vector<std::byte> bytes_of(const at::Tensor& tensor) {
  const auto* data = static_cast<const std::byte*>(tensor.const_data_ptr());
  return {data, data + tensor.nbytes()};
}

}  // namespace

TEST_CASE("a tensor leaves on the side stream behind the training stream's work") {
  FakeAccelerator device;
  HostCopies copies(at::kCPU, "test");
  const at::Tensor gradient = torch::arange(6).to(torch::kHalf);
  std::vector<std::byte> host(gradient.nbytes());
  device.complete = false;
  const c10::Event done = copies.out(gradient, host);
  CHECK(device.log == "record training; wait on side; record side; record side; ");
  CHECK((host == bytes_of(gradient)));
  CHECK_FALSE(done.query());
  device.complete = true;
  CHECK(done.query());
}

TEST_CASE(
    "values come back behind the training stream's work, and what follows comes behind them") {
  FakeAccelerator device;
  HostCopies copies(at::kCPU, "test");
  const at::Tensor value = torch::arange(12, torch::kFloat).view({3, 4});
  const std::vector<std::byte> host = bytes_of(value);
  at::Tensor plain = torch::zeros({3, 4});
  const at::Tensor turned = torch::zeros({4, 3}).t();  // dense in another order
  copies.begin_in();
  CHECK(device.log == "record training; wait on side; ");
  device.log.clear();
  copies.in(host, plain);
  copies.in(host, turned);
  CHECK(device.log.empty());
  copies.end_in();
  CHECK(device.log == "record side; wait on training; ");
  device.log.clear();
  copies.begin_in();  // the memory of the copies before may change from now on
  CHECK(device.log == "synchronize; record training; wait on side; ");
  CHECK(torch::equal(plain, value));
  CHECK(torch::equal(turned, value));
}

TEST_CASE("memory that copies hold is freed behind the last of them") {
  const FakeAccelerator device;
  HostCopies copies(at::kCPU, "test");
  AlignedBuffer memory(64);
  memory.keep(std::shared_ptr<void>(&memory, [&](void*) { device.log += "freed; "; }));
  copies.hold(memory);
  copies.out(torch::zeros({16}), memory.bytes());
  device.log.clear();
  memory = {};
  CHECK(device.log == "synchronize; freed; ");
}

}  // namespace dpwa
