#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "dpwa/kvworker/worker_model.h"
#include "dpwa/snapshot/manifest.h"

namespace dpwa::kvstore {

// A model in host memory, laid out as its manifest says. Its program says where its gradients are,
// and sees to it by itself that it writes neither weights nor gradients at the wrong time.
class HostModel final : public WorkerModel {
 public:
  // `memory` outlives it. `trained`: by tensor. Of the others, floating-point ones that are carried
  // are frozen parameters, those that are blended are buffers, and integers stay on the node.
  HostModel(const Manifest& manifest, std::span<std::byte> memory,
            const std::vector<bool>& trained);

  // A gradient, dense in the order of its shape, until the end of the step; null: there is none.
  void set_gradient(std::size_t trained, std::byte* gradient);
  // By trained parameter, from now on: those that the program does not train for a while.
  void set_frozen(std::vector<bool> frozen) { frozen_ = std::move(frozen); }
  // What an exchange has made of the gradients.
  struct Changes {
    bool are_means = false;
    std::vector<std::size_t> dropped;  // no worker has one
    std::vector<std::size_t> made;     // another worker has one: see made()
  };
  Changes take_changes() { return std::exchange(changes_, {}); }
  // The mean, for a parameter that has no gradient here. Lives until the next mean of it.
  std::span<std::byte> made(std::size_t trained) { return made_[trained]; }

  void check() const override {}
  std::optional<std::size_t> written() const override { return std::nullopt; }
  void know_written() override {}
  Lent value(std::size_t index) override;
  Lent change(std::size_t index) override;
  void remember() override;
  void write(std::size_t index, const Slices& slices) override;
  bool is_frozen(std::size_t trained) const override { return frozen_[trained]; }
  bool has_gradient(std::size_t trained) const override { return gradients_[trained] != nullptr; }
  Lent gradient(std::size_t trained) override;
  Came copy_gradient(std::size_t trained, std::span<std::byte> to) override;
  void take_mean(std::size_t trained, const Slices& mean) override;
  void take_mean(std::size_t trained, std::span<const std::byte> mean) override;
  void drop_gradient(std::size_t trained) override;
  void note_sent(std::size_t trained) override { sent_[trained] = true; }
  bool is_sent(std::size_t trained) const { return sent_[trained]; }
  void check_sent() const override {}
  void forget_sent() override { sent_.assign(sent_.size(), false); }

 private:
  struct Buffers {
    DType dtype = DType::float32;
    std::vector<std::span<std::byte>> members;
    std::vector<std::byte> value{};  // on the servers
  };
  std::vector<std::byte> flattened(const Buffers& buffers) const;
  std::span<std::byte> room_for_mean(std::size_t trained);

  std::vector<std::span<std::byte>> parameters_;
  std::vector<Buffers> buffers_;
  std::vector<std::vector<std::byte>> before_;  // by parameter, since remember()
  std::vector<std::byte*> gradients_;           // by trained parameter; null
  std::vector<std::vector<std::byte>> made_;    // by trained parameter
  std::vector<bool> sent_;                      // by trained parameter
  std::vector<bool> frozen_;                    // by trained parameter
  Changes changes_;
};

}  // namespace dpwa::kvstore
