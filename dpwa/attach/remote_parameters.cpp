#include "dpwa/attach/remote_parameters.h"

#include <algorithm>
#include <memory>
#include <new>
#include <utility>

#include "dpwa/base/invariant.h"
#include "dpwa/snapshot/memory_file.h"

namespace dpwa::attach {

using Kind = PassRequest::Kind;

RemoteParameters::RemoteParameters(Manifest manifest, std::size_t copies_at_once,
                                   ipc::MessageSocket& trainer, std::function<bool()> stop)
    : manifest_(std::move(manifest)),
      copies_at_once_(copies_at_once),
      trainer_(trainer),
      stop_(std::move(stop)) {}

// Not for other processes than the trainer, which writes to it.
AlignedBuffer RemoteParameters::allocate(std::size_t bytes, bool /*shared*/) {
  if (bytes == 0) return {};
  auto file = MemoryFile::create(bytes, MemoryFile::Access::write, "dpwa-passes");
  if (file == nullptr) throw std::bad_alloc();
  ask({.kind = Kind::memory, .range = {0, bytes}}, file->descriptor());
  memory_.push_back(file->data());
  std::byte* const data = file->data();
  return {std::shared_ptr<std::byte>(std::move(file), data), bytes};
}

void RemoteParameters::copy_out(std::span<std::byte> snapshot) {
  if (!snapshot.empty()) ask({.kind = Kind::copy_out, .memory = number_of(snapshot)});
}

void RemoteParameters::fetch(const Landing& landing) {
  ask_over(Kind::fetch, landing, 0);
}

void RemoteParameters::blend(const Landing& landing, double factor) {
  ask_over(Kind::blend, landing, factor);
}

void RemoteParameters::ask_over(Kind kind, const Landing& landing, double factor) {
  if (landing.bytes().empty()) return;
  ask({.kind = kind,
       .memory = number_of(landing.bytes()),
       .range = landing.range(),
       .mode = landing.mode(),
       .factor = factor});
}

// A snapshot of a former trainer lies in memory that this one has not mapped.
void RemoteParameters::assign(std::span<const std::byte> snapshot) {
  if (snapshot.empty()) return;
  const bool mapped = std::ranges::find(memory_, snapshot.data()) != memory_.end();
  if (mapped) {
    ask({.kind = Kind::assign, .memory = number_of(snapshot)});
    return;
  }
  AlignedBuffer copy = allocate(snapshot.size(), /*shared=*/false);
  std::ranges::copy(snapshot, copy.bytes().begin());
  const std::uint64_t number = number_of(copy.bytes());
  ask({.kind = Kind::assign, .memory = number});
  ask({.kind = Kind::release, .memory = number});
  memory_[number] = nullptr;
}

std::size_t RemoteParameters::unfinished_copies() {
  return static_cast<std::size_t>(ask({.kind = Kind::unfinished_copies}));
}

double RemoteParameters::loss(std::uint64_t send) {
  return ask({.kind = Kind::loss, .send = send});
}

double RemoteParameters::ask(const PassRequest& request, int descriptor) {
  if (!trainer_.send(encode(request), descriptor)) throw TrainerGone();
  ipc::expect_soon(trainer_.descriptor(), pass_within);
  const auto message = trainer_.receive(nullptr, stop_);
  if (!message) throw TrainerGone();
  const auto answer = pass_answer_in(*message);
  if (!answer) throw std::runtime_error("the trainer did not answer a pass");
  if (!answer->error.empty()) throw std::runtime_error(answer->error);
  return answer->value;
}

std::uint64_t RemoteParameters::number_of(std::span<const std::byte> memory) const {
  const auto found = std::ranges::find(memory_, memory.data());
  DPWA_INVARIANT(found != memory_.end(), "a pass is over memory that was allocated for it",
                 memory_.size());
  return static_cast<std::uint64_t>(found - memory_.begin());
}

}  // namespace dpwa::attach
