#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench/exchange.h"
#include "bench/measurers.h"
#include "bench/pull/raw_socket.h"
#include "bench/values.h"
#include "dpwa/base/checksum.h"
#include "dpwa/base/random.h"
#include "dpwa/base/threads.h"
#include "dpwa/snapshot/aligned_buffer.h"
#include "dpwa/snapshot/landing.h"
#include "interpolation/kernels/kernels.h"

namespace dpwa::bench {
namespace {

constexpr std::size_t part_bytes = 8 << 10;  // of a checked chunk, while it is in the cache
constexpr std::size_t element_bytes = sizeof(float);
constexpr std::size_t line_bytes = 64;

// Of equal values.
std::vector<AlignedBuffer> filled_buffers(std::size_t count, std::size_t bytes, std::size_t seed) {
  std::vector<AlignedBuffer> buffers;
  while (buffers.size() < count) fill_with_values(buffers.emplace_back(bytes).bytes(), seed);
  return buffers;
}

// A thread that does one piece of work at a time for another one, which sleeps meanwhile: as the
// network thread of a node does for the trainer. Work that throws ends the process.
class HelpingThread {
 public:
  explicit HelpingThread(std::function<void()> work)
      : work_(std::move(work)), thread_([this] { run(); }) {}
  ~HelpingThread() {
    set(State::ended);
    thread_.join();
  }

  void run_once() {
    set(State::asked);
    wait_while(State::asked);
  }

 private:
  enum class State { idle, asked, ended };

  void set(State state) {
    {
      const MutexLock lock(mutex_);
      state_ = state;
    }
    changed_.notify_all();
  }
  State wait_while(State state) {
    MutexLock lock(mutex_);
    while (state_ == state) changed_.wait(lock);
    return state_;
  }
  void run() {
    while (wait_while(State::idle) != State::ended) {
      work_();
      set(State::idle);
    }
  }

  const std::function<void()> work_;
  Mutex mutex_;
  Condition changed_;
  State state_ DPWA_GUARDED_BY(mutex_) = State::idle;
  std::thread thread_;
};

// The same pull by bare sockets: receive up to 512 KiB into one staging buffer, make use of it
// while it is hot in cache, and again.
// Job: {"mode", "bytes", "index", "ports", "peer": index or null, "pulls": bool}. Modes: in_place,
// blend while it arrives: the limit; checked, land as dpwa does, of a new version each time, with
// checksums as dpwa has them; ping_pong, receive only, in a thread of its own, as dpwa does.
class RawNode : public Exchanger {
 public:
  explicit RawNode(const Json& job)
      : checked_(job.at("mode") == "checked"),
        ping_pong_(job.at("mode") == "ping_pong"),
        index_(job.at("index")),
        ports_(job.at("ports").get<std::vector<std::uint16_t>>()),
        random_(index_ + 1),
        served_(filled_buffers(checked_ ? 3 : 1, job.at("bytes"), index_ + 1)),
        target_(job.at("pulls") ? served_.front().bytes().size() : 0),
        staging_(job.at("pulls") ? raw_chunk_bytes : 0),
        server_(ports_.at(index_), served_, checked_) {
    if (!job.at("peer").is_null()) only_ = job.at("peer").get<std::size_t>();
    peers_.resize(ports_.size());
    if (ping_pong_ && !target_.bytes().empty())
      network_.emplace([this] { took_ns_ = timed_pull(); });
  }

 private:
  void pull_once(Window& window) override {
    if (network_) {
      const auto from = SteadyClock::now();
      network_->run_once();
      window.trainer_latency_ns.push_back(nanoseconds_since(from));
      window.latency_ns.push_back(took_ns_);
    } else {
      window.latency_ns.push_back(timed_pull());
    }
    ++window.pulls;
    window.bytes += target_.bytes().size();
  }

  std::int64_t timed_pull() {
    const auto from = SteadyClock::now();
    pull_from(choose_peer());
    return nanoseconds_since(from);
  }

  const RawSocket& choose_peer() {
    std::size_t peer = only_;
    if (only_ == any) {
      peer = random_.below(ports_.size() - 1);
      if (peer >= index_) ++peer;
    }
    if (!peers_[peer].valid()) peers_[peer] = RawSocket::connect_to(ports_[peer]);
    return peers_[peer];
  }

  void pull_from(const RawSocket& peer) {
    const std::array<std::byte, raw_request_bytes> request{};
    bool whole = peer.send_all(request);
    if (checked_) return take_checked(peer);
    const auto staging = staging_.bytes();
    std::size_t rest = 0;  // bytes of an element that is not complete, at the start of the staging
    for (std::size_t at = 0; whole && at < target_.bytes().size();) {
      const std::size_t room = std::min(staging.size(), target_.bytes().size() - at);
      const std::size_t count = peer.receive_some(staging.subspan(rest, room - rest));
      whole = count > 0;
      const std::size_t have = rest + count;
      const bool last = at + have == target_.bytes().size();
      const std::size_t usable = last ? have : have - have % element_bytes;
      if (whole && !ping_pong_)
        kernels::lerp(DType::float32, target_.bytes().subspan(at, usable), staging.first(usable),
                      0.5);
      at += usable;
      rest = have - usable;
      std::memmove(staging.data(), staging.data() + usable, rest);
    }
    if (!whole) throw std::runtime_error("a raw connection has ended");
  }

  // Chunk after chunk: part by part read for the checksum and landed beside the own values, of a
  // new version each time.
  void take_checked(const RawSocket& peer) {
    const auto own = std::as_const(served_[pulls_++ % served_.size()]).bytes();
    const auto target = target_.bytes();
    for (std::size_t at = 0; at < target.size();) {
      const auto chunk = staging_.bytes().first(std::min(raw_chunk_bytes, target.size() - at));
      std::uint32_t expected = 0;
      bool whole = peer.receive_all(std::as_writable_bytes(std::span(&expected, 1)));
      Crc32c checksum;
      for (std::size_t have = 0, used = 0; whole && used < chunk.size();) {
        const std::size_t count = peer.receive_some(chunk.subspan(have));
        whole = count > 0;
        have += count;
        const std::size_t usable = have == chunk.size() ? have : have / line_bytes * line_bytes;
        while (used < usable) {
          const auto part = chunk.subspan(used, std::min(part_bytes, usable - used));
          checksum.update(part);
          kernels::land_difference(DType::float32, target.subspan(at + used, part.size()), part,
                                   own.subspan(at + used, part.size()), stores_);
          used += part.size();
        }
      }
      if (!whole) throw std::runtime_error("a raw connection has ended");
      if (checksum.value() != expected) throw std::runtime_error("a raw chunk is damaged");
      at += chunk.size();
    }
  }

  static constexpr std::size_t any = ~std::size_t{0};

  const bool checked_;
  const bool ping_pong_;
  const std::size_t index_;
  const std::vector<std::uint16_t> ports_;
  std::size_t only_ = any;
  Random random_;
  std::vector<AlignedBuffer> served_;
  AlignedBuffer target_;  // what is blended into, or landed in
  const kernels::Stores stores_ = target_.bytes().size() < Landing::stream_from_bytes
                                      ? kernels::Stores::cached
                                      : kernels::Stores::streaming;
  std::size_t pulls_ = 0;
  AlignedBuffer staging_;
  std::vector<RawSocket> peers_;
  RawServer server_;
  std::int64_t took_ns_ = 0;
  std::optional<HelpingThread> network_;  // with ping_pong
};

}  // namespace

std::unique_ptr<Measurer> make_raw_node(const Json& job) {
  return std::make_unique<RawNode>(job);
}

}  // namespace dpwa::bench
