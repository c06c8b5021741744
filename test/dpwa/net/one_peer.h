#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <utility>
#include <vector>

#include "dpwa/net/peer_address.h"
#include "test/dpwa/net/conversation.h"
#include "test/dpwa/net/fake_peer.h"
#include "test/support/eventually.h"
#include "test/support/vector_cluster.h"

namespace dpwa::test {

// Node w1, whose model takes several chunks, and its only peer w2, a fake that says hello as it
// should and answers every pull by `reply`.
class OnePeer {
 public:
  using Reply = std::function<void(RawSocket&, const PullSeen&)>;

  static constexpr std::uint32_t chunk_bytes = 4096;
  static constexpr std::size_t elements = 5 * chunk_bytes / sizeof(float) / 2;  // 2.5 chunks
  static constexpr float initial = 1.5F;

  // `timeout`: of the node's pulls, to whose end its steps wait.
  explicit OnePeer(Reply reply, Duration timeout = patience,
                   const std::function<void(Config&)>& tune = {},
                   std::uint32_t peer_capabilities = sound_hello().capabilities);

  StepReport step();
  // One step, which must end as `expected` and leave every bit of the model.
  StepReport check_harmless(Outcome expected);
  VectorNode& node() { return node_; }
  const FakePeer& peer() const { return peer_; }

 private:
  FakePeer peer_;
  VectorNode node_;
};

// Of a node as above, for a peer of the test's own.
Config one_peer_config(std::uint16_t peer_port, Duration timeout);

std::vector<float> vector_of(float value);
std::vector<std::byte> sound_reply(const PullSeen& request);                     // a vector of 2.5
void send_first(RawSocket& socket, const PullSeen& request, std::size_t count);  // bytes of it

// Offset in a reply of the payload of chunk `index`.
constexpr std::size_t payload_at(std::size_t index) {
  return wire::header_bytes + wire::snapshot_head_bytes + index * OnePeer::chunk_bytes +
         (index + 1) * wire::chunk_header_bytes;
}

// 'w1', which answers each pull by the next of `versions`, and the last of them for ever, whatever
// it is asked.
class ReplayingPeer {
 public:
  enum class After { goes_on, hangs_up };  // an answer

  explicit ReplayingPeer(std::deque<std::uint64_t> versions, After after = After::goes_on)
      : versions_(std::move(versions)), peer_([this, after](RawSocket& connection) {
          if (!welcome(connection, "w1")) return;
          while (const auto request = read_pull(connection)) {
            connection.send(snapshot_frame(*request, std::vector<float>(16, 9.0F),
                                           sound_progress(versions_.front())));
            ++answers_;
            if (versions_.size() > 1) versions_.pop_front();
            if (after == After::hangs_up) return;
          }
        }) {}

  PeerAddress address() const { return {"w1", {"127.0.0.1"}, peer_.port()}; }
  int answers() const { return answers_; }
  int connections() const { return peer_.connections(); }

 private:
  std::deque<std::uint64_t> versions_;
  std::atomic<int> answers_{0};
  FakePeer peer_;
};

}  // namespace dpwa::test
