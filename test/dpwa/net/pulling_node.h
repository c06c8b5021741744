#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "dpwa/net/client.h"
#include "dpwa/net/local_node.h"

namespace dpwa::test {

AlignedBuffer plain_memory(std::size_t bytes);

// To take over everything of one peer, as values.
inline PullSpec full_pull(PeerId peer, Duration timeout) {
  return {round_with(peer, take_over, timeout), std::nullopt, LandingMode::values};
}

// Node w2 of cluster "test": its Tx side alone, on a thread of its own. It has a float32 vector 'x'
// of zeros. `members`: who is in its cluster; `peers` for good when it is null.
class PullingNode {
 public:
  explicit PullingNode(std::vector<PeerAddress> peers, std::size_t elements = 16,
                       std::uint64_t seed = 1, bool same_host = true,
                       std::shared_ptr<Security> security = nullptr,
                       const BufferAllocator& allocate = test::plain_memory,
                       std::unique_ptr<Members> members = nullptr);
  ~PullingNode();  // stops

  void stop();
  Client& client() { return client_; }
  LocalNode& local() { return local_; }

  // One pull to its end; by default with a deadline that only a stuck test meets.
  Arrival pull();
  Arrival pull(const PullSpec& spec);
  std::span<const float> landed() const;

 private:
  boost::asio::io_context io_;
  LocalNode local_;
  Client client_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  std::thread thread_;
};

}  // namespace dpwa::test
