#include "examples/train/checkpoint.h"

#include <ATen/Context.h>
#include <torch/serialize/archive.h>
#include <torch/types.h>

#include <boost/endian/conversion.hpp>
#include <mutex>
#include <sstream>

#include "examples/train/errors.h"

namespace dpwa::train {
namespace {

namespace endian = boost::endian;
using torch::serialize::InputArchive;
using torch::serialize::OutputArchive;

constexpr std::size_t prefix_bytes = 8;

c10::Device device_of(const torch::nn::Module& model) {
  const auto parameters = model.parameters();
  return parameters.empty() ? c10::Device(c10::kCPU) : parameters.front().device();
}

// Parameters and buffers under one name space; names cannot collide within a module.
torch::OrderedDict<std::string, torch::Tensor> tensors_of(const torch::nn::Module& model) {
  auto tensors = model.named_parameters();
  for (const auto& buffer : model.named_buffers()) tensors.insert(buffer.key(), buffer.value());
  return tensors;
}

at::Generator generator_of(c10::Device device) {
  return at::globalContext().defaultGenerator(device);
}

std::string archive_of(const torch::nn::Module& model, const torch::optim::Optimizer& optimizer) {
  OutputArchive archive;
  OutputArchive tensors;
  // Copies: a parameter may be a view into a far larger buffer, all of which would be written.
  for (const auto& tensor : tensors_of(model))
    tensors.write(tensor.key(), tensor.value().detach().to(c10::kCPU).clone(),
                  /*is_buffer=*/true);
  archive.write("model", tensors);
  OutputArchive optimizer_state;
  optimizer.save(optimizer_state);
  archive.write("optimizer", optimizer_state);
  auto generator = generator_of(device_of(model));
  const std::scoped_lock lock(generator.mutex());
  archive.write("generator", generator.get_state(), /*is_buffer=*/true);
  std::ostringstream out;
  archive.save_to(out);
  return std::move(out).str();
}

void restore(const char* data, std::size_t size, torch::nn::Module& model,
             torch::optim::Optimizer& optimizer) {
  const c10::Device device = device_of(model);
  InputArchive archive;
  archive.load_from(data, size, device);
  InputArchive tensors;
  archive.read("model", tensors);
  const torch::NoGradGuard no_grad;
  for (auto& tensor : tensors_of(model)) {
    torch::Tensor stored;
    tensors.read(tensor.key(), stored, /*is_buffer=*/true);
    if (stored.sizes() != tensor.value().sizes())
      throw std::runtime_error("tensor '" + tensor.key() + "' has another shape");
    tensor.value().copy_(stored);
  }
  InputArchive optimizer_state;
  archive.read("optimizer", optimizer_state);
  optimizer.load(optimizer_state);
  torch::Tensor generator_state;
  archive.read("generator", generator_state, /*is_buffer=*/true);
  auto generator = generator_of(device);
  const std::scoped_lock lock(generator.mutex());
  generator.set_state(generator_state.to(c10::kCPU));
}

}  // namespace

std::string pack_checkpoint(const RunState& state, const torch::nn::Module& model,
                            const torch::optim::Optimizer& optimizer) {
  const std::string json = to_json(state);
  std::string body(prefix_bytes, '\0');
  endian::store_little_u64(reinterpret_cast<unsigned char*>(body.data()), json.size());
  return body + json + archive_of(model, optimizer);
}

RunState unpack_checkpoint(const std::string& body, const RunIdentity& here,
                           torch::nn::Module& model, torch::optim::Optimizer& optimizer) {
  try {
    if (body.size() < prefix_bytes) throw std::runtime_error("it is too short");
    const std::uint64_t json_bytes =
        endian::load_little_u64(reinterpret_cast<const unsigned char*>(body.data()));
    if (json_bytes > body.size() - prefix_bytes) throw std::runtime_error("it is too short");
    const RunState state = run_state_from_json(body.substr(prefix_bytes, json_bytes));
    require_same_run(state.identity, here);
    const std::size_t archive_at = prefix_bytes + json_bytes;
    restore(body.data() + archive_at, body.size() - archive_at, model, optimizer);
    return state;
  } catch (const UsageError&) {
    throw;
  } catch (const std::exception& error) {
    const std::string why = error.what();
    throw UsageError("--resume: the checkpoint does not fit this run: " +
                     why.substr(0, why.find('\n')));
  }
}

}  // namespace dpwa::train
