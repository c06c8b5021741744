#include "adapters/common/loss_reader.h"

#include <torch/types.h>

#include <cmath>

#include "test/adapters/doctest_with_torch.h"
#include "test/adapters/fake_accelerator.h"

namespace dpwa {

using test::FakeAccelerator;

TEST_CASE("a loss leaves on a stream of its own, and reading it waits for its own copy alone") {
  const FakeAccelerator device;
  LossReader reader(at::kCPU);
  const auto value = reader.copy(torch::tensor({2.5}), torch::empty({}));
  CHECK(device.log == "record training; wait on side; record side; keep for side; ");
  device.log.clear();
  CHECK(value() == 2.5);
  CHECK(device.log == "synchronize; ");
  CHECK(device.awaited == std::vector{1, 2});
  CHECK(value() == 2.5);
}

TEST_CASE("a loss in host memory is read at once, and what is no scalar is no number") {
  LossReader reader(at::kCPU);
  auto loss = torch::tensor(1.5);
  const auto value = reader.read(loss);
  loss.zero_();
  CHECK(value() == 1.5);
  CHECK(std::isnan(reader.read({})()));
  CHECK(std::isnan(reader.read(torch::zeros({2}))()));
}

}  // namespace dpwa
