#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <stdexcept>
#include <vector>

#include "dpwa/attach/protocol.h"
#include "dpwa/gossip/parameters.h"
#include "dpwa/ipc/unix_socket.h"
#include "dpwa/snapshot/landing.h"
#include "dpwa/snapshot/manifest.h"

namespace dpwa::attach {

// The trainer has ended, in the middle of what it asked for.
struct TrainerGone : std::runtime_error {
  TrainerGone() : std::runtime_error("the trainer has ended") {}
};

// Parameters that a trainer has on its device, as its node process sees them. The memory of
// snapshots and of what lands belongs to this process, and outlives the trainer, which has mapped
// it and makes the passes. Every call is one round trip, while the trainer waits for an answer to
// something else (PassServer). Calls throw TrainerGone, and std::runtime_error with what the device
// says. One thread.
class RemoteParameters : public Parameters {
 public:
  // `trainer` outlives it. `stop`: as in MessageSocket::receive.
  RemoteParameters(Manifest manifest, std::size_t copies_at_once, ipc::MessageSocket& trainer,
                   std::function<bool()> stop);

  const Manifest& manifest() const override { return manifest_; }
  AlignedBuffer allocate(std::size_t bytes, bool shared) override;
  void copy_out(std::span<std::byte> snapshot) override;
  void fetch(const Landing& landing) override;
  bool fetched() override { return ask({.kind = PassRequest::Kind::fetched}) != 0; }
  void blend(const Landing& landing, double factor) override;
  void assign(std::span<const std::byte> snapshot) override;
  bool settled() override { return ask({.kind = PassRequest::Kind::settled}) != 0; }
  std::size_t copies_at_once() const override { return copies_at_once_; }
  std::size_t unfinished_copies() override;
  bool landing_is_free() override { return ask({.kind = PassRequest::Kind::landing_is_free}) != 0; }

  // That the trainer gave with its n-th update_send(), once its device has it.
  double loss(std::uint64_t send);

 private:
  void ask_over(PassRequest::Kind kind, const Landing& landing, double factor);
  double ask(const PassRequest& request, int descriptor = -1);
  std::uint64_t number_of(std::span<const std::byte> memory) const;

  const Manifest manifest_;
  const std::size_t copies_at_once_;
  ipc::MessageSocket& trainer_;
  const std::function<bool()> stop_;
  std::vector<const std::byte*> memory_;  // by number
};

}  // namespace dpwa::attach
