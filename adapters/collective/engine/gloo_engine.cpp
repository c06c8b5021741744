// c10d::ProcessGroupGloo of LibTorch's wheels. They have its header and the code of Gloo, but not
// the headers of Gloo that it includes. The necessary parts of these are declared here, and CMake
// creates five empty header files for this source. Everything else is held by pointer, so these
// declarations need not match Gloo's layout.
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace gloo {

class Context {
 public:
  void setTimeout(std::chrono::milliseconds timeout);  // in LibTorch
};

namespace transport {
class Device;
class UnboundBuffer {
 public:
  virtual ~UnboundBuffer();  // in LibTorch
};
}  // namespace transport

namespace rendezvous {
// Base of c10d::GlooStore, which LibTorch constructs and this file never does.
class Store {
 public:
  virtual ~Store() = default;
  virtual void set(const std::string& key, const std::vector<char>& value) = 0;
  virtual std::vector<char> get(const std::string& key) = 0;
  virtual void wait(const std::vector<std::string>& keys) = 0;
  virtual void wait(const std::vector<std::string>& keys,
                    const std::chrono::milliseconds& timeout) = 0;
};
}  // namespace rendezvous

}  // namespace gloo

#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "adapters/collective/engine/engine.h"
#include "dpwa/base/thread_failure.h"
#include "dpwa/base/thread_name.h"
#include "dpwa/base/threads.h"

namespace dpwa::collective {

namespace {

// Tags of messages that are not part of an operation.
constexpr int silent_tag = 0x64707761;  // never sent: what the receives that abort() ends wait for
constexpr int farewell_tag = 0x64707762;

// The content of a farewell: the rank that was lost, or one of these.
constexpr std::int64_t in_order = -1;
constexpr std::int64_t unknown = -2;

constexpr std::chrono::hours for_ever(24 * 365);

// A rank informs the peers at these distances of its end. One peer would be enough, but then the
// news would travel through a large group one rank at a time.
std::vector<int> watch_distances(int size) {
  const int far = static_cast<int>(std::ceil(std::sqrt(size)));
  if (size < 2) return {};
  return far > 1 && far < size ? std::vector<int>{1, far} : std::vector<int>{1};
}

// Extends c10d's Gloo for groups whose members die.
//
// abort(): in c10d's Gloo it does nothing. A receive that times out, however, makes Gloo close
// every connection of the group with an error, which ends all waits. So each member posts one
// receive per peer that is never answered, and abort() gives them one millisecond.
//
// Noticing the end of others: an operation notices only the connections that it is waiting for. So
// each member waits for a farewell of one or two peers. It aborts if the farewell states that a
// rank was lost, or if the connection breaks without a farewell, and informs its own peers.
class GlooGroup final : public c10d::ProcessGroupGloo {
 public:
  GlooGroup(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
            const c10::intrusive_ptr<Options>& options, std::function<void()> on_broken)
      : ProcessGroupGloo(store, rank, size, options), on_broken_(std::move(on_broken)) {
    for (int peer = 0; peer < size; ++peer) {
      if (peer != rank) unanswered_.push_back(receive(at::zeros({1}, at::kLong), peer, silent_tag));
    }
    for (const int distance : watch_distances(size)) {
      const int peer = (rank - distance + size) % size;
      auto farewell = at::zeros({1}, at::kLong);
      auto work = receive(farewell, peer, farewell_tag);
      watchers_.emplace_back([this, peer, farewell, work] {
        run_or_end("the thread that watches a rank", [&] { watch(peer, farewell, work); });
      });
    }
  }

  // The destructor of the base waits for its operations.
  ~GlooGroup() override {
    end(unknown);
    for (auto& watcher : watchers_) watcher.join();
  }

  void abort() override { end(unknown); }
  void shutdown() override { end(in_order); }
  void abandon(int rank) { end(rank); }

  std::optional<int> lost_rank() const {
    const auto lost = lost_.load();
    return lost < 0 ? std::nullopt : std::optional<int>(static_cast<int>(lost));
  }

 private:
  c10::intrusive_ptr<c10d::Work> receive(const at::Tensor& into, int peer, int tag) {
    std::vector<at::Tensor> list{into};
    return recv(list, peer, tag);
  }

  void watch(int peer, const at::Tensor& farewell, const c10::intrusive_ptr<c10d::Work>& work) {
    name_thread("dpwa-farewell");
    std::int64_t news = peer;
    try {
      work->wait(for_ever);
      news = farewell.item<std::int64_t>();
    } catch (const std::exception&) {
      // The connection broke, or this end closed it.
    }
    if (news != in_order) end(news);
  }

  // Closes all connections, once, and sends `news` to the peers that watch this member.
  void end(std::int64_t news) {
    const MutexLock lock(ending_);
    if (ended_) return;
    ended_ = true;
    if (news >= 0) lost_ = news;
    for (const int distance : watch_distances(getSize())) {
      try {
        std::vector<at::Tensor> list{at::full({1}, news, at::kLong)};
        send(list, (getRank() + distance) % getSize(), farewell_tag)
            ->wait(std::chrono::milliseconds(5));
      } catch (const std::exception&) {
        // That peer has ended, or does not receive.
      }
    }
    for (const auto& receive : unanswered_) {
      try {
        receive->wait(std::chrono::milliseconds(1));
      } catch (const std::exception&) {
        // The intended timeout, or a connection that had broken before.
      }
    }
    unanswered_.clear();
    if (news != in_order && on_broken_) on_broken_();
  }

  const std::function<void()> on_broken_;
  std::atomic<std::int64_t> lost_ = unknown;
  Mutex ending_;
  bool ended_ DPWA_GUARDED_BY(ending_) = false;
  std::vector<c10::intrusive_ptr<c10d::Work>> unanswered_ DPWA_GUARDED_BY(ending_);
  std::vector<std::thread> watchers_;
};

Connection form_gloo(const c10::intrusive_ptr<c10d::Store>& store, const GroupOptions& options) {
  auto gloo = c10d::ProcessGroupGloo::Options::create(options.form_timeout);
  gloo->devices.push_back(
      c10d::ProcessGroupGloo::createDeviceForHostname(options.own_address, /*lazyInit=*/false));
  auto backend =
      c10::make_intrusive<GlooGroup>(store, options.rank, options.size, gloo, options.on_broken);
  backend->setTimeout(options.timeout);
  auto group = c10::make_intrusive<c10d::ProcessGroup>(options.rank, options.size);
  // Where LibTorch has CUDA its Gloo copies tensors of GPUs through host memory.
  for (const auto device : {c10::DeviceType::CPU, c10::DeviceType::CUDA})
    group->setBackend(device, c10d::ProcessGroup::BackendType::GLOO,
                      c10::intrusive_ptr<c10d::Backend>(backend));
  return {group, [gloo_group = backend.get()] { return gloo_group->lost_rank(); },
          [gloo_group = backend.get()](int rank) { gloo_group->abandon(rank); }};
}

}  // namespace

EngineSupport gloo_engine() {
  return {EngineKind::gloo, "gloo", "", [] { return Engine{.name = "gloo", .form = form_gloo}; }};
}

}  // namespace dpwa::collective
