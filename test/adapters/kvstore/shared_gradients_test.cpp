#include "dpwa/kvworker/shared_gradients.h"

#include <torch/nn/module.h>
#include <torch/types.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "adapters/kvstore/torch_model.h"
#include "dpwa/base/time.h"
#include "test/adapters/kvstore/store_nodes.h"

namespace dpwa {

using namespace test;
using kvstore::SharedGradients;
using kvstore::SharedKeys;

namespace {

constexpr SharedKeys apart{0, 0};
constexpr SharedKeys together{400, 1000};

using NamedValues = std::vector<std::pair<std::string, Tensor>>;

// Some share a key; "large" and the only one of its type do not, and two keys become full.
struct MixedModel : torch::nn::Module {
  MixedModel() {
    const auto add = [this](const std::string& name, const Tensor& values) {
      parameters.emplace_back(name, register_parameter(name, values.to(training_device())));
    };
    for (const auto type : {torch::kFloat, torch::kHalf, torch::kBFloat16}) {
      for (int i = 0; i < 4; ++i)
        add(std::string(torch::toString(type)) + std::to_string(i), torch::zeros({7, 9}, type));
    }
    add("large", torch::zeros({2000}));
    add("double", torch::zeros({3}, torch::kDouble));
    add("scalar", torch::zeros({}));
    add("empty", torch::zeros({0, 4}));
    add("transposed", torch::zeros({5, 6}));
    add("sparse", torch::zeros({6, 3}));
    add("of one worker", torch::zeros({11}));
    add("unused", torch::zeros({2, 2}));
  }
  NamedValues parameters;
};

void set_gradients(NamedValues& all, std::size_t worker, int step) {
  double number = 7.3 * step + 0.61 * static_cast<double>(worker);
  for (auto& [name, parameter] : all) {
    number += 1;
    Tensor gradient = torch::arange(parameter.numel(), torch::kDouble).add(1).mul(number).sin();
    gradient = gradient.to(parameter.device(), parameter.scalar_type()).view(parameter.sizes());
    if (name == "transposed") gradient = gradient.t().contiguous().t();
    if (name == "sparse" && worker == 1) gradient = gradient.to_sparse(1);
    if (name == "unused" || (name == "of one worker" && worker == 1)) gradient.reset();
    parameter.mutable_grad() = gradient;
  }
}

using Means = std::vector<std::map<std::string, Tensor>>;  // by step

// The gradients of two workers of different batches after each step.
std::vector<Means> means_of_two(const SharedKeys& limits, kvstore::Compression compression) {
  std::vector<Means> means(2);
  const BackEnd back_end =
      store(2, 1, [&](Config& config) { config.kvstore.compression.type = compression; });
  run_nodes(back_end, [&](Participant& node) {
    kvstore::WorkerSession session(node.config, wall_clock_us(), nullptr);
    kvclient::PushTerms terms;
    terms.step = session.join();
    terms.merge = kvstore::Merge::mean;
    terms.weight = node.index == 0 ? 1 : 3;
    MixedModel net;
    NamedValues& all = net.parameters;
    kvstore::TorchModel model(net);
    SharedGradients gradients(session, model, "", limits);
    for (int step = 0; step < 3; ++step, ++terms.step) {
      set_gradients(all, node.index, step);
      for (std::size_t i = all.size(); i-- > 0;)  // as backward() does, with some of them
        if (all[i].second.grad().defined() && i % 3 != 0) gradients.push(i, terms);
      gradients.push_rest(terms);
      session.client().at(terms.step, /*waiting=*/true);
      gradients.pull(terms.step);
      REQUIRE(gradients.finish().complete());
      auto& of_step = means[node.index].emplace_back();
      for (std::size_t i = 0; i < all.size(); ++i) {
        const auto& [name, parameter] = all[i];
        CHECK(gradients.is_there(i) == (name != "unused"));
        CHECK(parameter.grad().defined() == (name != "unused"));
        if (parameter.grad().defined()) of_step[name] = parameter.grad().clone();
      }
    }
    node.wait_for_all();
    session.leave();
  });
  return means;
}

bool are_equal(const Means& some, const Means& others) {
  return std::ranges::equal(some, others, [](const auto& one, const auto& other) {
    return std::ranges::equal(one, other, [](const auto& a, const auto& b) {
      return a.first == b.first && torch::equal(a.second, b.second);
    });
  });
}

}  // namespace

TEST_CASE("gradients that share a key have the means of gradients with keys of their own") {
  for (const auto compression : {kvstore::Compression::none, kvstore::Compression::fp16}) {
    CAPTURE(kvstore::name_of(compression));
    const auto alone = means_of_two(apart, compression);
    const auto shared = means_of_two(together, compression);
    CHECK(are_equal(alone[0], alone[1]));
    CHECK(are_equal(shared[0], shared[1]));
    CHECK(are_equal(alone[0], shared[0]));
    NamedValues first = MixedModel().parameters;
    NamedValues second = MixedModel().parameters;
    set_gradients(first, 0, 0);
    set_gradients(second, 1, 0);
    const Tensor mean = (first[0].second.grad() + 3 * second[0].second.grad()) / 4;
    CHECK(relative_distance(shared[0][0].at(first[0].first), mean) < 1e-3);
  }
}

TEST_CASE("with 2bit, gradients that share a key travel as they are") {
  const auto plain = means_of_two(together, kvstore::Compression::none);
  const auto coarse = means_of_two(together, kvstore::Compression::two_bit);
  CHECK(torch::equal(plain[0][0].at("Float0"), coarse[0][0].at("Float0")));
  CHECK(!torch::equal(plain[0][0].at("large"), coarse[0][0].at("large")));
}

TEST_CASE("a gradient that is pushed twice in a step is refused") {
  run_nodes(store(1, 1, {}), [](Participant& node) {
    kvstore::WorkerSession session(node.config, wall_clock_us(), nullptr);
    kvclient::PushTerms terms;
    terms.step = session.join();
    terms.merge = kvstore::Merge::mean;
    MixedModel net;
    set_gradients(net.parameters, 0, 0);
    kvstore::TorchModel model(net);
    SharedGradients gradients(session, model, "");
    gradients.push(1, terms);
    CHECK_THROWS_AS(gradients.push(1, terms), std::logic_error);
    session.leave();
  });
}

}  // namespace dpwa
