#include <doctest/doctest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <exception>
#include <future>
#include <memory>
#include <optional>

#include "dpwa/net/peer_channel.h"
#include "test/dpwa/net/channel_to_peer.h"
#include "test/dpwa/net/conversation.h"
#include "test/dpwa/net/pulling_node.h"
#include "test/dpwa/net/served_node.h"
#include "test/support/eventually.h"
#include "test/support/vector_cluster.h"

// A channel to a peer of this host that is given up while it waits for the end of its connection.

namespace dpwa {
namespace {

namespace asio = boost::asio;
using test::claim;
using test::PullingNode;
using test::ServedNode;

constexpr std::size_t replaced_elements = 16;

// Node w2, whose cluster file names w1 at `port`; nobody else may join.
std::unique_ptr<Members> members_with_peer_at(std::uint16_t port) {
  MembershipOptions options;
  options.open = false;
  return std::make_unique<Members>(claim("w2", 7000, 3), std::vector{claim("w1", port, 0)}, options,
                                   1);
}

// One channel that the test may destroy; its io_context is run by hand.
class LooseChannel {
 public:
  explicit LooseChannel(std::uint16_t port)
      : local_("test", "w2", 3, {"w1"}, test::vector_manifest(replaced_elements), 4096,
               test::plain_memory),
        landing_(local_.manifest, test::plain_memory) {
    channel_.emplace(io_, local_, PeerAddress{"w1", {"127.0.0.1"}, port}, staging_, true);
    local_.store.publish(*local_.store.begin(), test::sound_progress());
  }

  // After it the channel watches its connection.
  bool pull() {
    std::optional<PullResult> result;
    asio::co_spawn(io_, pull_once(result), [](std::exception_ptr failure) {
      if (failure) std::rethrow_exception(failure);
    });
    while (!result && io_.run_one_for(test::patience) > 0) {
    }
    return result && !result->failure && result->same_host;
  }
  void destroy() { channel_.reset(); }
  // Whether nothing is left to wait for.
  bool runs_out() {
    io_.restart();
    io_.run_for(test::patience);
    return io_.stopped();
  }

 private:
  asio::awaitable<void> pull_once(std::optional<PullResult>& result) {
    PullRequest request;
    request.range = {0, local_.manifest.total_bytes()};
    request.deadline_ms = 10000;
    PullResult asked = co_await channel_->ask(request);
    if (!asked.failure) {
      landing_.begin(LandingMode::difference, local_.store.latest(), request.range);
      asked = co_await channel_->land(landing_);
    }
    result = std::move(asked);
  }

  asio::io_context io_;
  LocalNode local_;
  Landing landing_;
  AlignedBuffer staging_ = ReplyReader::make_staging(4096);
  std::optional<PeerChannel> channel_;
};

}  // namespace

TEST_CASE("a channel that is destroyed leaves nothing behind that waits for its peer") {
  ServedNode served(replaced_elements, {}, AlignedBuffer::shared);
  LooseChannel channel(served.port());
  REQUIRE(channel.pull());
  channel.destroy();
  SUBCASE("the peer lives") {}
  SUBCASE("the peer has gone meanwhile") {
    served.stop();
  }
  CHECK(channel.runs_out());
}

TEST_CASE(
    "a peer of this host that has moved or gone from the file is let go, and the node stops") {
  std::optional<ServedNode> served;
  served.emplace(replaced_elements, ServerOptions(), AlignedBuffer::shared);
  PullingNode node({{"w1", {"127.0.0.1"}, served->port()}}, replaced_elements, 1, true, nullptr,
                   test::plain_memory, members_with_peer_at(served->port()));
  REQUIRE(node.pull().outcome == Outcome::mixed);
  REQUIRE(node.client().same_host(0));

  std::optional<ServedNode> elsewhere;
  SUBCASE("it has moved") {
    elsewhere.emplace(replaced_elements, ServerOptions(), AlignedBuffer::shared);
    REQUIRE(elsewhere->publish(2.0F));  // the first version was blended
    node.local().members->list(claim("w1", elsewhere->port(), 0));
    CHECK(node.pull().outcome == Outcome::mixed);
    CHECK(node.client().same_host(0));
    const auto& traffic = elsewhere->local().traffic;
    CHECK(test::eventually([&] { return traffic.same_host_served == 1; }));
  }
  SUBCASE("it is no longer listed") {
    node.local().members->unlist("w1");
    PullSpec spec;
    spec.timeout = std::chrono::milliseconds(100);
    node.pull(spec);
  }
  SUBCASE("it has moved, and its process ends") {
    node.local().members->list(claim("w1", 1, 0));
    PullSpec spec;
    spec.timeout = std::chrono::milliseconds(100);
    CHECK(node.pull(spec).outcome != Outcome::mixed);
    served.reset();
  }
  auto stopped = std::async(std::launch::async, [&node] { node.stop(); });
  CHECK(stopped.wait_for(test::patience) == std::future_status::ready);
  served.reset();  // where the above fails: so that the test comes to its end
  elsewhere.reset();
}

}  // namespace dpwa
