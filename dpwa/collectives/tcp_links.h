#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "dpwa/base/time.h"
#include "dpwa/collectives/link_former.h"
#include "dpwa/collectives/link_listener.h"
#include "dpwa/collectives/link_socket.h"
#include "dpwa/collectives/link_watch.h"
#include "dpwa/collectives/links.h"

namespace dpwa::collectives {

// Links over TCP, or TLS over it. Bytes go from the memory of the caller to the kernel and back. An
// end of a member is noticed also while this one does nothing: LinkWatch.
class TcpLinks final : public Links {
 public:
  // `members` by rank; none at the own one. `on_broken`: as LinkWatch has it.
  TcpLinks(int rank, std::vector<std::optional<MemberLinks>> members,
           std::function<void(int lost)> on_broken);

  Ticket send(int to, std::span<const std::byte> bytes) override;
  Ticket receive(int from, std::span<std::byte> into) override;
  Ticket sent(int to) const override { return peer(to).sends.done; }
  Ticket received(int from) const override { return peer(from).receives.done; }
  bool idle() const override { return under_way_ == 0; }
  void advance() override;
  void check() const override {
    if (watch_->is_broken()) watch_->throw_broken();
  }

  void set_timeout(Duration timeout) override { timeout_ = timeout; }
  void abort(int lost) noexcept override;
  int lost() const override { return watch_->lost(); }
  // Any thread.
  bool is_broken() const { return watch_->is_broken(); }

 private:
  // What is posted in one direction.
  struct Queue {
    std::deque<iovec> parts;  // without the bytes that have moved
    Ticket posted = 0;
    Ticket done = 0;
    bool ready = true;  // the kernel may move bytes now
  };
  struct Peer {
    std::optional<LinkSocket> socket;  // none at the own rank
    Queue sends, receives;
  };
  enum class Moved : std::uint8_t { nothing, some, completed };

  Peer& peer(int rank) { return peers_[static_cast<std::size_t>(rank)]; }
  const Peer& peer(int rank) const { return peers_[static_cast<std::size_t>(rank)]; }
  Ticket post(Queue& queue, void* bytes, std::size_t count);
  template <typename Move>
  Moved move(int rank, Queue& queue, const Move& move_some);
  Moved move_bytes(int rank);
  void wait(TimePoint until);
  std::string words_for_awaited() const;

  std::vector<Peer> peers_;
  std::size_t under_way_ = 0;  // sends and receives
  int first_ = 0;              // whose turn it is to move bytes first
  Duration timeout_ = std::chrono::minutes(5);
  // Ends before the connections of data: its farewell comes before their end.
  std::unique_ptr<LinkWatch> watch_;
};

// form_links(), and TcpLinks of the result.
std::unique_ptr<TcpLinks> connect_links(LinkListener listener, const LinkOptions& options, int rank,
                                        const std::vector<std::string>& texts, Duration limit,
                                        const std::stop_token& stop = {},
                                        std::function<void(int lost)> on_broken = nullptr);

}  // namespace dpwa::collectives
