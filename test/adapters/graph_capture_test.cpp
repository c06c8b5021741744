#include "adapters/common/graph_capture.h"

#include <torch/types.h>

#include <stdexcept>
#include <string>

#include "adapters/backend.h"
#include "test/adapters/doctest_with_torch.h"
#include "test/adapters/fake_accelerator.h"
#include "test/adapters/small_net.h"

namespace dpwa {
namespace {

using test::backward;
using test::FakeAccelerator;
using test::momentum_sgd;

constexpr int is_active = 1;
constexpr int is_legacy_stream = 906;

template <int error, int state>
int answer(void* stream, int* status) {
  CHECK(stream == FakeAccelerator::handle());
  *status = state;
  return error;
}

}  // namespace

TEST_CASE("a stream captures when the runtime says so, and not when it cannot tell") {
  const FakeAccelerator device;
  CHECK(is_capturing(at::kCPU, answer<0, is_active>));
  CHECK_FALSE(is_capturing(at::kCPU, answer<0, 0>));
  CHECK_FALSE(is_capturing(at::kCPU, answer<is_legacy_stream, is_active>));
  CHECK_FALSE(is_capturing(at::kCPU, nullptr));
}

TEST_CASE("a step while a graph is captured is one error, and the next one after it counts") {
  test::Net model(3);
  const auto optimizer = momentum_sgd(model);
  test::Circle circle(3, at::kCPU);
  bool captures = false;
  const auto adapter = with_call_order(make_null({}, model), [&captures] { return captures; });
  adapter->start();
  adapter->step(*optimizer, backward(*optimizer, model, circle));
  captures = true;
  const auto refused = [](const std::string& call) {
    return call +
           " while a CUDA graph is captured, whose replays would exchange nothing with other "
           "nodes; accepted: capture other work, and call it after each replay";
  };
  const torch::Tensor none;
  CHECK_THROWS_WITH_AS(adapter->step(*optimizer, none), refused("step()").c_str(),
                       std::logic_error);
  CHECK_THROWS_WITH_AS(adapter->skip_step(*optimizer, none), refused("skip_step()").c_str(),
                       std::logic_error);
  CHECK_THROWS_WITH_AS(adapter->average_gradients(), refused("average_gradients()").c_str(),
                       std::logic_error);
  CHECK_THROWS_WITH_AS(adapter->update_send(none), refused("update_send()").c_str(),
                       std::logic_error);
  captures = false;
  adapter->update_send(none);
  captures = true;
  CHECK_THROWS_WITH_AS(adapter->update_wait(none), refused("update_wait()").c_str(),
                       std::logic_error);
  captures = false;
  CHECK(adapter->update_wait(none).clock == 2);
  captures = true;
  adapter->leave();
  CHECK_NOTHROW(adapter->step(*optimizer, none));
}

}  // namespace dpwa
