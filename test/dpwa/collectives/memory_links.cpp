#include "test/dpwa/collectives/memory_links.h"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <string>

#include "dpwa/collectives/group.h"

namespace dpwa::test {

using collectives::GroupBroken;

// The ends of the streams at one member.
class MemoryHub::Ends final : public collectives::Links {
 public:
  Ends(MemoryHub& hub, int rank)
      : Links(rank, hub.size_),
        hub_(hub),
        random_(derive_seed(hub.seed_, {static_cast<std::uint64_t>(rank)})),
        sends_(static_cast<std::size_t>(hub.size_)),
        receives_(static_cast<std::size_t>(hub.size_)) {}

  Ticket send(int to, std::span<const std::byte> bytes) override {
    return sends_[index(to)].post({const_cast<std::byte*>(bytes.data()), bytes.size()});
  }
  Ticket receive(int from, std::span<std::byte> into) override {
    return receives_[index(from)].post(into);
  }
  Ticket sent(int to) const override { return sends_[index(to)].done; }
  Ticket received(int from) const override { return receives_[index(from)].done; }
  bool idle() const override {
    const auto is_idle = [](const Queue& queue) { return queue.parts.empty(); };
    return std::ranges::all_of(sends_, is_idle) && std::ranges::all_of(receives_, is_idle);
  }

  void advance() override {
    if (idle()) throw std::logic_error("nothing is posted");
    MutexLock lock(hub_.mutex_);
    for (const Ticket before = completed(); completed() == before;) {
      throw_if_broken();
      bool moved = false;
      const int first = static_cast<int>(random_.below(static_cast<std::uint64_t>(size())));
      for (int i = 0; i < size(); ++i) {
        const int peer = (first + i) % size();
        moved |= move_in(peer);
        moved |= move_out(peer);
      }
      if (moved) hub_.changed_.notify_all();
      const TimePoint until = std::chrono::steady_clock::now() + timeout_;
      if (!moved && !hub_.broken_ && !hub_.changed_.wait_until(lock, until)) break_hub(-1);
    }
  }
  void check() const override {
    const MutexLock lock(hub_.mutex_);
    throw_if_broken();
  }

  void set_timeout(Duration timeout) override { timeout_ = timeout; }
  void abort(int lost) noexcept override {
    const MutexLock lock(hub_.mutex_);
    break_hub(lost);
  }
  int lost() const override {
    const MutexLock lock(hub_.mutex_);
    return hub_.lost_;
  }

 private:
  struct Queue {
    std::deque<std::span<std::byte>> parts;
    Ticket posted = 0;
    Ticket done = 0;

    Ticket post(std::span<std::byte> part) {
      if (part.empty()) return posted;
      parts.push_back(part);
      return ++posted;
    }
    void moved(std::size_t count) {
      parts.front() = parts.front().subspan(count);
      if (!parts.front().empty()) return;
      parts.pop_front();
      ++done;
    }
  };

  std::size_t index(int rank) const {
    if (rank < 0 || rank >= size() || rank == this->rank()) throw std::logic_error("no such peer");
    return static_cast<std::size_t>(rank);
  }
  Ticket completed() const {
    Ticket all = 0;
    for (const Queue& queue : sends_) all += queue.done;
    for (const Queue& queue : receives_) all += queue.done;
    return all;
  }
  void throw_if_broken() const DPWA_REQUIRES(hub_.mutex_) {
    if (hub_.broken_) throw GroupBroken(hub_.lost_, "broken by rank " + std::to_string(hub_.lost_));
  }
  void break_hub(int lost) noexcept DPWA_REQUIRES(hub_.mutex_) {
    if (hub_.broken_) return;
    hub_.broken_ = true;
    hub_.lost_ = lost;
    hub_.changed_.notify_all();
  }

  bool move_out(int to) DPWA_REQUIRES(hub_.mutex_) {
    Queue& queue = sends_[static_cast<std::size_t>(to)];
    if (queue.parts.empty()) return false;
    Stream& stream = hub_.stream(rank(), to);
    std::size_t most =
        std::min(queue.parts.front().size(), hub_.stream_bytes_ - stream.bytes.size());
    if (stream.left && *stream.left == 0) {
      break_hub(rank());
      return false;
    }
    if (most == 0) return false;
    if (stream.left) most = std::min(most, *stream.left);
    const std::size_t count = 1 + random_.below(most);
    const auto part = queue.parts.front().first(count);
    stream.bytes.insert(stream.bytes.end(), part.begin(), part.end());
    if (stream.left) *stream.left -= count;
    queue.moved(count);
    return true;
  }
  bool move_in(int from) DPWA_REQUIRES(hub_.mutex_) {
    Queue& queue = receives_[static_cast<std::size_t>(from)];
    auto& bytes = hub_.stream(from, rank()).bytes;
    if (queue.parts.empty() || bytes.empty()) return false;
    const std::size_t count = 1 + random_.below(std::min(queue.parts.front().size(), bytes.size()));
    const auto end = bytes.begin() + static_cast<std::ptrdiff_t>(count);
    std::copy(bytes.begin(), end, queue.parts.front().begin());
    bytes.erase(bytes.begin(), end);
    queue.moved(count);
    return true;
  }

  MemoryHub& hub_;
  Random random_;
  std::vector<Queue> sends_, receives_;
  Duration timeout_ = std::chrono::seconds(20);
};

MemoryHub::MemoryHub(int size, std::uint64_t seed, std::size_t stream_bytes)
    : size_(size),
      seed_(seed),
      stream_bytes_(stream_bytes),
      streams_(static_cast<std::size_t>(size) * static_cast<std::size_t>(size)) {}

std::unique_ptr<collectives::Links> MemoryHub::links(int rank) {
  return std::make_unique<Ends>(*this, rank);
}

void MemoryHub::end_after(int from, int to, std::size_t bytes) {
  const MutexLock lock(mutex_);
  stream(from, to).left = bytes;
}

}  // namespace dpwa::test
