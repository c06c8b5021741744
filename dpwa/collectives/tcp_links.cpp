#include "dpwa/collectives/tcp_links.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "dpwa/base/invariant.h"
#include "dpwa/base/plain_text.h"

namespace dpwa::collectives {
namespace {

// Of one call of the system: more would keep the other peers waiting, and leave the caches.
constexpr std::size_t most_parts = 16;
constexpr std::size_t most_bytes_at_once = std::size_t{512} << 10;

std::vector<std::optional<LinkSocket>> news_of(std::vector<std::optional<MemberLinks>>& members) {
  std::vector<std::optional<LinkSocket>> news(members.size());
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (members[i]) news[i] = std::move(members[i]->news);
  }
  return news;
}

}  // namespace

TcpLinks::TcpLinks(int rank, std::vector<std::optional<MemberLinks>> members,
                   std::function<void(int lost)> on_broken)
    : Links(rank, static_cast<int>(members.size())), peers_(members.size()) {
  for (std::size_t i = 0; i < members.size(); ++i) {
    DPWA_INVARIANT(members[i].has_value() != (static_cast<int>(i) == rank),
                   "connections to all members but the own one", i, rank);
    if (members[i]) peers_[i].socket = std::move(members[i]->data);
  }
  watch_ = std::make_unique<LinkWatch>(rank, news_of(members), std::move(on_broken));
}

Links::Ticket TcpLinks::post(Queue& queue, void* bytes, std::size_t count) {
  if (count > 0) {
    queue.parts.push_back({bytes, count});
    ++queue.posted;
    ++under_way_;
  }
  return queue.posted;
}

Links::Ticket TcpLinks::send(int to, std::span<const std::byte> bytes) {
  DPWA_INVARIANT(to != rank() && to >= 0 && to < size(), "another member", to, rank(), size());
  check();
  return post(peer(to).sends, const_cast<std::byte*>(bytes.data()), bytes.size());
}

Links::Ticket TcpLinks::receive(int from, std::span<std::byte> into) {
  DPWA_INVARIANT(from != rank() && from >= 0 && from < size(), "another member", from, rank(),
                 size());
  check();
  return post(peer(from).receives, into.data(), into.size());
}

// Moves bytes of the first parts with one call of the system.
template <typename Move>
TcpLinks::Moved TcpLinks::move(int rank, Queue& queue, const Move& move_some) {
  if (queue.parts.empty() || !queue.ready) return Moved::nothing;
  std::array<iovec, most_parts> parts;
  std::size_t count = 0;
  std::size_t asked = 0;
  for (auto part = queue.parts.begin();
       part != queue.parts.end() && count < most_parts && asked < most_bytes_at_once; ++part) {
    parts[count] = *part;
    parts[count].iov_len = std::min(part->iov_len, most_bytes_at_once - asked);
    asked += parts[count++].iov_len;
  }
  const auto moved = move_some(std::span<const iovec>(parts).first(count));
  if (!moved) {
    watch_->ended(rank, moved.error().detail);
    watch_->throw_broken();
  }
  queue.ready = *moved == asked;
  if (*moved == 0) return Moved::nothing;
  const Ticket before = queue.done;
  for (std::size_t rest = *moved; rest > 0;) {
    iovec& part = queue.parts.front();
    const std::size_t of_part = std::min(rest, part.iov_len);
    rest -= of_part;
    part.iov_base = static_cast<std::byte*>(part.iov_base) + of_part;
    part.iov_len -= of_part;
    if (part.iov_len > 0) break;
    queue.parts.pop_front();
    ++queue.done;
    --under_way_;
  }
  return queue.done > before ? Moved::completed : Moved::some;
}

TcpLinks::Moved TcpLinks::move_bytes(int rank) {
  Peer& other = peer(rank);
  const Moved in =
      move(rank, other.receives, [&](auto parts) { return other.socket->read_some(parts); });
  const Moved out =
      move(rank, other.sends, [&](auto parts) { return other.socket->write_some(parts); });
  return std::max(in, out);
}

void TcpLinks::advance() {
  DPWA_INVARIANT(!idle(), "something is posted", under_way_);
  TimePoint until = TimePoint::max();
  for (;;) {
    check();
    Moved most = Moved::nothing;
    first_ = (first_ + 1) % size();
    for (int i = 0; i < size(); ++i) {
      const int rank = (first_ + i) % size();
      if (rank != this->rank()) most = std::max(most, move_bytes(rank));
    }
    if (most == Moved::completed) return;
    if (most == Moved::some) {
      until = TimePoint::max();
      continue;
    }
    if (until == TimePoint::max()) until = std::chrono::steady_clock::now() + timeout_;
    wait(until);
  }
}

// Until a connection is ready, the group is broken, or it is too late.
void TcpLinks::wait(TimePoint until) {
  std::vector<pollfd> polled{{watch_->descriptor(), POLLIN, 0}};
  std::vector<int> ranks{rank()};
  for (int rank = 0; rank < size(); ++rank) {
    Peer& other = peer(rank);
    int events = 0;
    if (!other.receives.parts.empty()) {
      events |= POLLIN;
      other.socket->sleep_until(other.receives.parts.front().iov_len);
    }
    if (!other.sends.parts.empty()) events |= POLLOUT;
    if (events == 0) continue;
    polled.push_back({other.socket->descriptor(), static_cast<short>(events), 0});
    ranks.push_back(rank);
  }
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(
      std::max<Duration>(until - std::chrono::steady_clock::now(), Duration::zero()));
  constexpr std::chrono::milliseconds longest = std::chrono::hours(1);
  const int ready =
      ::poll(polled.data(), polled.size(), static_cast<int>(std::min(left, longest).count()));
  if (ready == 0 && std::chrono::steady_clock::now() >= until) {
    watch_->break_off(
        -1, "no byte has moved for " + in_seconds(timeout_) + "; awaited: " + words_for_awaited());
  }
  for (std::size_t i = 1; i < polled.size() && ready > 0; ++i) {
    Peer& other = peer(ranks[i]);
    constexpr int ended = POLLERR | POLLHUP;
    if ((polled[i].revents & (POLLIN | ended)) != 0) other.receives.ready = true;
    if ((polled[i].revents & (POLLOUT | ended)) != 0) other.sends.ready = true;
  }
}

std::string TcpLinks::words_for_awaited() const {
  std::string words;
  for (int rank = 0; rank < size(); ++rank) {
    const Peer& other = peer(rank);
    if (other.sends.parts.empty() && other.receives.parts.empty()) continue;
    const bool both = !other.sends.parts.empty() && !other.receives.parts.empty();
    words += (words.empty() ? "rank " : ", rank ") + std::to_string(rank) + " (";
    words += both ? "both ways)" : other.sends.parts.empty() ? "to send)" : "to receive)";
  }
  return words;
}

void TcpLinks::abort(int lost) noexcept {
  watch_->break_off(lost, lost < 0
                              ? "the group was aborted"
                              : "the group was aborted: rank " + std::to_string(lost) + " is gone");
}

std::unique_ptr<TcpLinks> connect_links(LinkListener listener, const LinkOptions& options, int rank,
                                        const std::vector<std::string>& texts, Duration limit,
                                        const std::stop_token& stop,
                                        std::function<void(int lost)> on_broken) {
  return std::make_unique<TcpLinks>(
      rank, form_links(std::move(listener), options, rank, texts, limit, stop),
      std::move(on_broken));
}

}  // namespace dpwa::collectives
