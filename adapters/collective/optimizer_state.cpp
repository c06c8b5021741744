#include "adapters/collective/optimizer_state.h"

#include <ATen/ops/empty.h>
#include <torch/serialize.h>

#include <cstring>
#include <sstream>

#include "adapters/collective/engine/operations.h"

namespace dpwa::collective {

std::string broadcast_state(const torch::optim::Optimizer* own, const ProcessGroup& group,
                            int root) {
  std::string text;
  auto bytes = at::empty({1}, at::kLong);
  if (group.rank() == root) {
    if (own != nullptr) {
      std::ostringstream out;
      torch::serialize::OutputArchive archive;
      own->save(archive);
      archive.save_to(out);
      text = out.str();
    }
    *bytes.mutable_data_ptr<std::int64_t>() = static_cast<std::int64_t>(text.size());
  }
  Operations(group).broadcast({"the size of the optimizer's state", bytes}, root);
  const std::int64_t size = *bytes.const_data_ptr<std::int64_t>();
  if (size == 0) return {};
  auto content = at::empty({size}, at::kByte);
  if (group.rank() == root) std::memcpy(content.mutable_data_ptr(), text.data(), text.size());
  Operations(group).broadcast({"the state of the optimizer", content}, root);
  return {static_cast<const char*>(content.const_data_ptr()), static_cast<std::size_t>(size)};
}

void load_state(torch::optim::Optimizer& optimizer, const std::string& state) {
  if (state.empty()) return;
  std::istringstream in(state);
  torch::serialize::InputArchive archive;
  archive.load_from(in);
  optimizer.load(archive);
}

}  // namespace dpwa::collective
