#include "examples/train/checkpoint.h"

#include <ATen/Context.h>
#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>
#include <torch/serialize/archive.h>
#include <torch/types.h>

#include <mutex>
#include <new>

#include "dpwa/config/config.h"
#include "examples/train/checkpoint_store.h"
#include "examples/train/saved_model.h"

namespace dpwa::train {
namespace {

using torch::serialize::InputArchive;
using torch::serialize::OutputArchive;

c10::Device device_of(const torch::nn::Module& model) {
  const auto parameters = model.parameters();
  return parameters.empty() ? c10::Device(c10::kCPU) : parameters.front().device();
}

at::Generator generator_of(c10::Device device) {
  return at::globalContext().defaultGenerator(device);
}

// Memory that LibTorch's writer needs itself: names, offsets, the code of the archive's modules.
constexpr std::int64_t writer_bytes = 4 << 20;

// Appends the archive to `out`. LibTorch finishes a file in a destructor, where an error ends the
// process. So writing to `out` never fails, and the writer's own memory is allocated before it
// begins. Throws std::bad_alloc or c10::Error when memory is refused; `out` is then unspecified.
void append(OutputArchive archive, std::string& out) {
  at::empty({writer_bytes}, at::kByte).reset();
  bool refused = false;
  archive.save_to([&](const void* data, std::size_t bytes) noexcept {
    if (refused) return bytes;
    try {
      out.append(static_cast<const char*>(data), bytes);
    } catch (const std::exception&) {
      refused = true;
      std::string().swap(out);  // room for the writer to come to its end
    }
    return bytes;
  });
  if (refused) throw std::bad_alloc();
}

OutputArchive archive_of(const torch::nn::Module& model, const torch::optim::Optimizer& optimizer) {
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
  return archive;
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
  const torch::Tensor state = generator_state.to(c10::kCPU);
  // That of another kind of device has another size: this one then begins with the node's seed.
  if (state.numel() == generator.get_state().numel()) generator.set_state(state);
}

}  // namespace

std::string pack_checkpoint(const RunState& state, const torch::nn::Module& model,
                            const torch::optim::Optimizer& optimizer) {
  std::string body = begin_checkpoint(to_json(state));
  append(archive_of(model, optimizer), body);
  return body;
}

RunState unpack_checkpoint(const std::string& body, const RunIdentity& here,
                           torch::nn::Module& model, torch::optim::Optimizer& optimizer) {
  try {
    const CheckpointParts parts = split_checkpoint(body);
    const RunState state = run_state_from_json(std::string(parts.state));
    require_same_run(state.identity, here);
    restore(parts.archive.data(), parts.archive.size(), model, optimizer);
    return state;
  } catch (const ConfigError&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const c10::OutOfMemoryError&) {
    throw;
  } catch (const std::exception& error) {
    std::string why = error.what();
    if (why.find("can't allocate memory") != std::string::npos) throw;  // of LibTorch, on a CPU
    if (why.starts_with("[json.exception")) why = "its description of the run cannot be read";
    throw ConfigError("--resume: the checkpoint does not fit this run: " +
                      why.substr(0, why.find('\n')));
  }
}

}  // namespace dpwa::train
