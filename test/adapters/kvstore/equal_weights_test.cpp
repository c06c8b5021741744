#include "dpwa/kvworker/weights_checksum.h"

#include <torch/types.h>

#include <array>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "adapters/adapter.h"
#include "test/adapters/kvstore/store_nodes.h"

// What ends workers with kvstore.update: worker whose weights are no longer equal.
namespace dpwa {

using namespace test;

namespace {

using Spoil = std::function<void(Net&, torch::optim::Optimizer&)>;

// The lines with which two workers end, of which the second does `spoil` before its step `at`; the
// batch of the first one is `first_batch`. "": it trains for 150 steps.
std::vector<std::string> ends_of(std::uint64_t first_batch, const Spoil& spoil, int at) {
  const Data data = data_of(64);
  const auto models = models_of<Net>(2, 5);
  std::vector<std::string> ends(2);
  run_nodes(store(2, 1, [](Config& config) { config.kvstore.update = KvstoreUpdate::worker; }),
            [&](Participant& node) {
              Net& net = *models[node.index];
              const auto optimizer = make(optimizers()[1].second, net);
              const auto adapter = make_adapter(node.config, net);
              try {
                adapter->start();
                for (int step = 0; step < 150; ++step) {
                  adapter->set_batch_size(node.index == 0 ? first_batch : 32);
                  if (node.index == 1 && step == at) spoil(net, *optimizer);
                  make_steps(*adapter, static_cast<int>(node.index), net, *optimizer, data, 1);
                }
                adapter->finish();
              } catch (const std::runtime_error& error) {
                ends[node.index] = error.what();
              }
            });
  return ends;
}

void halve_rate(Net&, torch::optim::Optimizer& optimizer) {
  for (auto& group : optimizer.param_groups())
    group.options().set_lr(0.5 * group.options().get_lr());
}

}  // namespace

TEST_CASE("workers whose weights differ end soon") {
  const std::vector<Spoil> spoils = {
      halve_rate,
      [](Net& net, torch::optim::Optimizer&) {
        const torch::NoGradGuard no_grad;
        net.second->bias[1] += 1e-3;
      },
  };
  for (const Spoil& spoil : spoils) {
    for (const auto& [at, found_at] : {std::pair(5, 8), std::pair(70, 100)}) {
      const auto ends = ends_of(32, spoil, at);
      for (std::size_t i = 0; i < ends.size(); ++i) {
        CHECK(ends[i] == "node 'w" + std::to_string(i + 1) + "' ends at clock " +
                             std::to_string(found_at) +
                             ", because its weights differ from those of the other workers, and "
                             "must be equal after each step; accepted: the same optimizer and "
                             "numbers on all workers, processors of one type, and nothing else "
                             "that writes weights");
      }
    }
  }
}

TEST_CASE("workers with other learning rates end after their first step") {
  for (const std::string& end : ends_of(32, halve_rate, 0))
    CHECK(end.find("' ends at clock 1, because its weights differ") != std::string::npos);
}

TEST_CASE("workers whose weights are equal go on, whatever their batches") {
  const Spoil none = [](Net&, torch::optim::Optimizer&) {};
  for (const std::uint64_t batch : {0U, 32U, 1000003U})
    for (const std::string& end : ends_of(batch, none, 5)) CHECK(end.empty());
}

TEST_CASE("the mean of equal checksums is told from others, whatever the weights") {
  // As servers do: in fp32.
  const auto mean_of = [](const std::vector<std::uint32_t>& checksums,
                          const std::vector<float>& weights) {
    std::array<float, checksum_parts> mean{};
    double all = 0;
    for (std::size_t i = 0; i < checksums.size(); ++i) {
      const auto parts = parts_of(checksums[i]);
      for (std::size_t k = 0; k < checksum_parts; ++k) mean[k] += weights[i] * parts[k];
      all += weights[i];
    }
    for (float& part : mean) part *= static_cast<float>(1 / all);
    return mean;
  };
  std::vector<float> weights;
  for (int i = 0; i < 100; ++i) weights.push_back(static_cast<float>(1 + 7919 * i % 1000) / 3);
  for (const std::uint32_t checksum : {0U, 1U, 0xfefdfcfbU, 0xffffffffU}) {
    const std::vector<std::uint32_t> same(weights.size(), checksum);
    CHECK(is_mean_of_equals(mean_of(same, weights), checksum));
  }
  // One worker has a thousandth of the weight: it finds the difference itself.
  const auto mean = mean_of({0x01020304, 0x01020305}, {1, 999});
  CHECK(!is_mean_of_equals(mean, 0x01020304));
  CHECK(is_mean_of_equals(mean, 0x01020305));
  CHECK(!is_mean_of_equals(mean_of({0x01020304, 0x01020305}, {1, 1}), 0x01020305));
}

}  // namespace dpwa
