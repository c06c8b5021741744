#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "dpwa/net/peer_address.h"
#include "test/dpwa/net/conversation.h"
#include "test/dpwa/net/fake_peer.h"

namespace dpwa::test {

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
