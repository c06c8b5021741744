#include "adapters/common/flat_parameters.h"

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <torch/serialize/archive.h>
#include <torch/types.h>

#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "dpwa/snapshot/blocks.h"
#include "dpwa/snapshot/mark.h"
#include "test/adapters/doctest_with_torch.h"

namespace dpwa {
namespace {

using torch::nn::Module;

// What a module can hold: every floating-point dtype, counters, flags, and odd layouts.
std::shared_ptr<Module> varied_module() {
  torch::manual_seed(1);
  auto module = std::make_shared<Module>("varied");
  auto child = module->register_module("child", std::make_shared<Module>("child"));
  module->register_parameter("f32", torch::randn({7, 3}));
  module->register_parameter("bf16", torch::randn({5}).to(torch::kBFloat16));
  module->register_parameter("f16", torch::randn({9}).to(torch::kHalf));
  module->register_parameter("f64", torch::randn({3}, torch::kDouble));
  module->register_parameter("scalar", torch::randn({}));
  module->register_parameter("none", torch::empty({0, 4}));
  child->register_parameter(
      "image", torch::randn({2, 3, 4, 5}).contiguous(torch::MemoryFormat::ChannelsLast));
  child->register_parameter("transposed", torch::randn({6, 2}).t());
  child->register_parameter("frozen", torch::randn({4}), /*requires_grad=*/false);
  child->register_buffer("running_mean", torch::randn({3}));
  child->register_buffer("num_batches_tracked", torch::tensor(12, torch::kLong));
  child->register_buffer("mask", torch::tensor({true, false, true}));
  child->register_buffer("undefined", torch::Tensor());
  return module;
}

torch::OrderedDict<std::string, torch::Tensor> tensors_of(const Module& module) {
  auto tensors = module.named_parameters();
  for (const auto& buffer : module.named_buffers()) {
    if (buffer.value().defined()) tensors.insert(buffer.key(), buffer.value());
  }
  return tensors;
}

bool lies_in(const at::Tensor& memory, const at::Tensor& tensor) {
  const auto* begin = static_cast<const std::byte*>(memory.const_data_ptr());
  const auto* data = static_cast<const std::byte*>(tensor.const_data_ptr());
  return data >= begin && data + tensor.nbytes() <= begin + memory.nbytes();
}

}  // namespace

TEST_CASE("flattening keeps values, dtypes, shapes and identity and moves all into one memory") {
  const auto module = varied_module();
  std::vector<at::Tensor> before;
  std::vector<const void*> identities;
  for (const auto& item : tensors_of(*module)) {
    before.push_back(item.value().detach().clone());
    identities.push_back(item.value().unsafeGetTensorImpl());
  }
  const FlatParameters flat(*module);
  std::size_t index = 0;
  for (const auto& item : tensors_of(*module)) {
    CAPTURE(item.key());
    const at::Tensor& after = item.value();
    CHECK(after.unsafeGetTensorImpl() == identities[index]);
    CHECK((after.scalar_type() == before[index].scalar_type()));
    CHECK(after.sizes() == before[index].sizes());
    CHECK(torch::equal(after, before[index]));
    CHECK((after.numel() == 0 || lies_in(flat.memory(), after)));
    ++index;
  }
  CHECK(index == 12);
  CHECK_NOTHROW(flat.check());
}

TEST_CASE("a manifest lists the tensors of one module after the other, by name, shape and rule") {
  const auto module = varied_module();
  module->register_buffer("of_root", torch::randn({2}));
  const FlatParameters flat(*module);
  std::vector<std::string> names;
  for (const TensorSpec& spec : flat.manifest().tensors()) names.push_back(spec.name);
  CHECK(names == std::vector<std::string>{"f32", "bf16", "f16", "f64", "scalar", "none", "of_root",
                                          "child.image", "child.transposed", "child.frozen",
                                          "child.running_mean", "child.num_batches_tracked",
                                          "child.mask",
                                          "mark: channels_last = 1 tensors: child.image"});
  const auto rule_of = [&](const std::string& name) {
    for (const TensorSpec& spec : flat.manifest().tensors()) {
      if (spec.name == name) return spec.rule;
    }
    throw std::out_of_range(name);
  };
  for (const char* name : {"f32", "bf16", "f16", "f64", "scalar", "child.running_mean"})
    CHECK(rule_of(name) == BlendRule::interpolate);
  CHECK(rule_of("child.num_batches_tracked") == BlendRule::maximum);
  CHECK(rule_of("child.frozen") == BlendRule::carry);
  CHECK(rule_of("child.mask") == BlendRule::carry);
  CHECK(flat.manifest().tensors()[0].shape == std::vector<std::uint64_t>{7, 3});
}

TEST_CASE("the statistics of a BatchNorm lie with its weights, and in their block") {
  torch::nn::Sequential model(torch::nn::Conv2d(1, 16, 3), torch::nn::BatchNorm2d(16),
                              torch::nn::Conv2d(16, 16, 3), torch::nn::BatchNorm2d(16),
                              torch::nn::Linear(512, 64));
  const FlatParameters flat(*model);
  const Manifest& manifest = flat.manifest();
  const auto block_of = [&](const std::string& name, const std::vector<ByteRange>& blocks) {
    for (std::size_t i = 0; i < manifest.tensors().size(); ++i) {
      if (manifest.tensors()[i].name != name) continue;
      for (std::size_t b = 0; b < blocks.size(); ++b) {
        if (manifest.offset_of(i) < blocks[b].end()) return b;
      }
    }
    throw std::out_of_range(name);
  };
  for (const std::size_t count : {2, 3, 4, 8, 16}) {
    CAPTURE(count);
    const auto blocks = layer_blocks(manifest, count);
    REQUIRE(blocks.size() == count);
    for (const std::string norm : {"1.", "3."}) {
      const std::size_t block = block_of(norm + "weight", blocks);
      for (const char* other : {"bias", "running_mean", "running_var"})
        CHECK(block_of(norm + other, blocks) == block);
    }
  }
}

TEST_CASE("channels_last tensors keep their strides, with a mark") {
  const auto model = [](bool channels_last) {
    torch::manual_seed(1);
    torch::nn::Sequential made(torch::nn::Conv2d(3, 8, 3), torch::nn::Conv2d(8, 4, 1),
                               torch::nn::Conv3d(3, 2, 2), torch::nn::Linear(4, 2));
    if (!channels_last) return made;
    for (auto& item : made->named_parameters()) {
      at::Tensor tensor = item.value();
      if (tensor.dim() == 4) tensor.set_data(tensor.contiguous(at::MemoryFormat::ChannelsLast));
      if (tensor.dim() == 5) tensor.set_data(tensor.contiguous(at::MemoryFormat::ChannelsLast3d));
    }
    return made;
  };
  auto plain = model(false);
  const FlatParameters plain_flat(*plain);
  auto kept = model(true);
  const auto first_strides = kept->parameters()[0].strides().vec();
  FlatParameters kept_flat(*kept);

  CHECK(kept->parameters()[0].strides() == at::IntArrayRef(first_strides));
  for (std::size_t i = 0; i < plain->parameters().size(); ++i) {
    const at::Tensor tensor = kept->parameters()[i];
    CAPTURE(i);
    CHECK(torch::equal(tensor, plain->parameters()[i]));
    CHECK(lies_in(kept_flat.memory(), tensor));
    if (tensor.dim() == 4) CHECK(tensor.is_contiguous(at::MemoryFormat::ChannelsLast));
    if (tensor.dim() == 5) CHECK(tensor.is_contiguous(at::MemoryFormat::ChannelsLast3d));
  }
  CHECK_NOTHROW(kept_flat.check());
  CHECK_FALSE(mark_of(plain_flat.manifest().tensors().back()));
  CHECK(plain_flat.manifest().fingerprint() != kept_flat.manifest().fingerprint());
  const auto marked = mark_of(kept_flat.manifest().tensors().back());
  REQUIRE(marked);
  CHECK(marked->what == "channels_last");
  CHECK(marked->value == "2 tensors: 0.weight, 2.weight");  // not that of one place

  at::Tensor moved = kept->parameters()[0];
  moved.set_data(moved.as_strided(moved.sizes(), {27, 9, 3, 1}));
  CHECK_THROWS_WITH_AS(kept_flat.check(), doctest::Contains("'0.weight' got another shape"),
                       std::logic_error);
}

TEST_CASE("gradients of channels_last parameters have their strides, and a step keeps them") {
  torch::nn::Conv2d conv(3, 8, 3);
  at::Tensor weight = conv->weight;
  weight.set_data(weight.contiguous(at::MemoryFormat::ChannelsLast));
  const FlatParameters flat(*conv);
  const auto images = torch::randn({2, 3, 8, 8}).contiguous(at::MemoryFormat::ChannelsLast);
  conv(images).square().sum().backward();
  CHECK(weight.grad().is_contiguous(at::MemoryFormat::ChannelsLast));
  const at::Tensor before = weight.detach().clone();
  torch::optim::SGD(conv->parameters(), 0.1).step();
  CHECK(torch::allclose(weight.detach(), before - 0.1 * weight.grad()));
  CHECK_NOTHROW(flat.check());
}

TEST_CASE("a tensor that was registered first as a buffer is still taken as the parameter it is") {
  Module root("root");
  const auto tied = torch::randn({4});
  root.register_buffer("copy", tied);
  auto child = root.register_module("child", std::make_shared<Module>("child"));
  child->register_parameter("weight", tied, /*requires_grad=*/false);
  const FlatParameters flat(root);
  REQUIRE(flat.manifest().tensors().size() == 1);
  CHECK(flat.manifest().tensors()[0].rule == BlendRule::carry);
}

TEST_CASE("a write to a region shows in the module, a write to the module in the region") {
  const auto module = varied_module();
  FlatParameters flat(*module);
  for (std::size_t i = 0; i < flat.manifest().regions().size(); ++i) flat.region(i).fill_(1);
  for (const auto& item : tensors_of(*module)) {
    CAPTURE(item.key());
    CHECK(item.value().to(torch::kDouble).eq(1).all().item<bool>());
  }
  const torch::NoGradGuard no_grad;
  for (auto& item : tensors_of(*module)) item.value().zero_();
  const Manifest& manifest = flat.manifest();
  for (std::size_t i = 0; i < manifest.tensors().size(); ++i) {
    CAPTURE(manifest.tensors()[i].name);
    const auto bytes =
        flat.memory().narrow(0, static_cast<std::int64_t>(manifest.offset_of(i)),
                             static_cast<std::int64_t>(manifest.tensors()[i].bytes()));
    CHECK(bytes.eq(0).all().item<bool>());
  }
}

TEST_CASE("gradients reach flattened parameters, those of odd layouts included") {
  const auto module = varied_module();
  const FlatParameters flat(*module);
  torch::Tensor sum = torch::zeros({});
  for (auto& parameter : module->parameters()) {
    if (parameter.requires_grad()) sum = sum + parameter.to(torch::kFloat).square().sum();
  }
  sum.backward();
  for (const auto& item : module->named_parameters()) {
    CAPTURE(item.key());
    REQUIRE(item.value().grad().defined() == item.value().requires_grad());
    if (!item.value().requires_grad()) continue;
    CHECK(torch::allclose(item.value().grad(), item.value().detach() * 2, 1e-2));
  }
}

TEST_CASE("a parameter that two modules share stays shared and is taken once") {
  Module root("root");
  auto a = root.register_module("a", std::make_shared<Module>("a"));
  auto b = root.register_module("b", std::make_shared<Module>("b"));
  const auto tied = torch::randn({4});
  a->register_parameter("weight", tied);
  b->register_parameter("weight", tied);
  b->register_parameter("bias", torch::randn({2}));
  const FlatParameters flat(root);
  REQUIRE(flat.manifest().tensors().size() == 2);
  CHECK(flat.manifest().tensors()[0].name == "a.weight");
  CHECK(flat.manifest().tensors()[1].name == "b.bias");
  CHECK(a->parameters()[0].is_same(b->parameters()[0]));
  flat.region(0).fill_(3);
  CHECK(b->parameters()[0].eq(3).all().item<bool>());
}

TEST_CASE("tensors that share memory without being one tensor are refused by name") {
  Module module("aliased");
  const auto weight = torch::randn({4, 2});
  module.register_parameter("weight", weight);
  module.register_buffer("first_row", weight.detach()[0]);
  CHECK_THROWS_WITH_AS(FlatParameters{module}, doctest::Contains("'first_row'"),
                       std::invalid_argument);
}

TEST_CASE("parts of one storage that do not overlap are taken apart") {
  Module module("parts");
  const auto whole = torch::arange(8, torch::kFloat);
  module.register_parameter("low", whole.narrow(0, 0, 4));
  module.register_parameter("high", whole.narrow(0, 4, 4));
  const FlatParameters flat(module);
  CHECK(torch::equal(flat.region(0).narrow(0, 0, 4), torch::arange(4, torch::kFloat)));
  CHECK(torch::equal(flat.region(0).narrow(0, 4, 12), torch::zeros({12})));  // up to 64 bytes
  CHECK(torch::equal(flat.region(0).narrow(0, 16, 4), torch::arange(4, 8, torch::kFloat)));
}

TEST_CASE("a model that cannot be shared is refused, naming the tensor") {
  Module empty("empty");
  CHECK_THROWS_AS(FlatParameters{empty}, std::invalid_argument);

  const auto refused = [](const at::Tensor& tensor) {
    Module module("refused");
    module.register_parameter("fine", torch::randn({2}));
    module.register_buffer("culprit", tensor);
    CHECK_THROWS_WITH_AS(FlatParameters{module}, doctest::Contains("'culprit'"),
                         std::invalid_argument);
  };
  refused(torch::zeros({2}, torch::kComplexFloat));
  refused(torch::zeros({2}, torch::kFloat8_e4m3fn));
  refused(torch::zeros({3, 3}).to_sparse());
  refused(torch::empty({2}, torch::kMeta));
}

TEST_CASE("a refused model is left as it was") {
  Module module("refused");
  const auto weight = module.register_parameter("weight", torch::randn({2}));
  const void* before = weight.const_data_ptr();
  module.register_buffer("complex", torch::zeros({2}, torch::kComplexFloat));
  CHECK_THROWS_AS(FlatParameters{module}, std::invalid_argument);
  CHECK(weight.const_data_ptr() == before);
}

TEST_CASE("moving any tensor of the model away afterwards is noticed") {
  const auto cast = varied_module();
  const FlatParameters flat_cast(*cast);
  cast->to(torch::kDouble);
  CHECK_THROWS_WITH_AS(flat_cast.check(), doctest::Contains("make_adapter()"), std::logic_error);

  for (const auto& item : tensors_of(*varied_module())) {
    if (item.value().numel() == 0) continue;
    CAPTURE(item.key());
    const auto module = varied_module();
    const FlatParameters flat(*module);
    at::Tensor tensor = tensors_of(*module)[item.key()];
    tensor.set_data(tensor.detach().clone());
    const std::string name = "'" + item.key() + "'";
    CHECK_THROWS_WITH_AS(flat.check(), doctest::Contains(name.c_str()), std::logic_error);
  }

  Module one("one");
  auto weight = one.register_parameter("weight", torch::randn({3}));
  const FlatParameters flat_one(one);
  weight.set_data(torch::zeros({3}));
  CHECK_THROWS_WITH_AS(flat_one.check(), doctest::Contains("'weight'"), std::logic_error);
}

TEST_CASE("a model whose first or last tensor is empty is not taken for one that was moved") {
  Module module("empty ends");
  module.register_parameter("first", torch::empty({0}));
  module.register_parameter("weight", torch::randn({3}));
  module.register_parameter("last", torch::empty({0}));
  const FlatParameters flat(module);
  CHECK_NOTHROW(flat.check());
}

TEST_CASE("a flattened module saves and loads as any other, without waste") {
  const auto module = varied_module();
  const FlatParameters flat(*module);
  torch::serialize::OutputArchive out;
  module->save(out);
  std::stringstream file;
  out.save_to(file);
  const auto bytes = file.str().size();

  const auto loaded = varied_module();
  {
    const torch::NoGradGuard no_grad;
    for (auto& item : tensors_of(*loaded)) item.value().zero_();
  }
  torch::serialize::InputArchive in;
  in.load_from(file);
  loaded->load(in);
  const auto expected = tensors_of(*module);
  for (const auto& item : tensors_of(*loaded)) {
    CAPTURE(item.key());
    const at::Tensor& saved = expected[item.key()];
    REQUIRE((item.value().scalar_type() == saved.scalar_type()));
    CHECK(torch::equal(item.value(), saved));
  }
  torch::serialize::OutputArchive plain_out;
  varied_module()->save(plain_out);
  std::ostringstream plain;
  plain_out.save_to(plain);
  CHECK(bytes < plain.str().size() + flat.manifest().total_bytes() + 4096);
}

TEST_CASE("ten thousand tensors become one region in their order") {
  Module module("many");
  for (int i = 0; i < 10000; ++i)
    module.register_parameter("p" + std::to_string(i), torch::full({3}, static_cast<float>(i)));
  const FlatParameters flat(module);
  REQUIRE(flat.manifest().regions().size() == 1);
  const auto region = torch::constant_pad_nd(flat.region(0), {0, 13}).view({10000, 16});
  CHECK(torch::equal(region.narrow(1, 0, 3),
                     torch::arange(10000, torch::kFloat).unsqueeze(1).expand({10000, 3})));
  CHECK(torch::equal(region.narrow(1, 3, 13), torch::zeros({10000, 13})));
}

}  // namespace dpwa
