#include <doctest/doctest.h>

#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "test/dpwa/net/channel_to_peer.h"
#include "test/dpwa/net/conversation.h"
#include "test/dpwa/net/fake_peer.h"
#include "test/support/eventually.h"

namespace dpwa {
namespace {

namespace asio = boost::asio;
using test::RawSocket;
using wire::MessageType;

constexpr std::size_t asked_elements = test::ChannelToPeer::elements;

std::vector<std::byte> news_of_w1(std::uint32_t request_id) {
  MemberExchange exchange;
  exchange.claims = {test::claim("w1", 7000, 11)};
  return wire::encode(exchange, request_id);
}

// The channel of node w2 to w1.
class Puller {
 public:
  explicit Puller(std::uint16_t port)
      : peer_(port, /*same_host=*/false,
              std::make_unique<Members>(test::claim("w2", 7000, 3),
                                        std::vector{test::claim("w1", 7000, 0)},
                                        MembershipOptions(), 1)) {}

  PullResult pull() {
    std::optional<PullResult> result;
    peer_.io.restart();
    asio::co_spawn(peer_.io, peer_.pull(), [&](std::exception_ptr error, PullResult pulled) {
      if (error) std::rethrow_exception(error);
      result = std::move(pulled);
    });
    while (!result && peer_.io.run_one_for(test::patience) > 0) {
    }
    REQUIRE(result);
    return std::move(*result);
  }

 private:
  test::ChannelToPeer peer_;
};

}  // namespace

TEST_CASE("news and a pull leave together, and are answered in either order") {
  enum class Order { news_first, pull_first, news_with_next_pull };
  for (const Order order : {Order::news_first, Order::pull_first, Order::news_with_next_pull}) {
    CAPTURE(static_cast<int>(order));
    const std::vector<float> values(asked_elements, 2.5F);
    std::atomic<int> news = 0;
    test::FakePeer peer([&](RawSocket& socket) {
      const auto capabilities = test::sound_hello().capabilities | wire::members_capability;
      if (!test::welcome(socket, "w1", capabilities)) return;
      std::vector<std::vector<std::byte>> unsent;
      const auto send_news = [&] {
        for (const auto& each : std::exchange(unsent, {})) socket.send(each);
      };
      while (const auto frame = socket.read_frame()) {
        const std::uint32_t id = frame->header.request_id;
        if (frame->header.type == MessageType::members) {
          if (order == Order::news_with_next_pull) send_news();
          unsent.push_back(news_of_w1(id));
          ++news;
          if (order == Order::news_first) send_news();
          continue;
        }
        const auto pull = wire::decode_pull(frame->body);
        if (!pull) return;
        socket.send(test::snapshot_frame({id, *pull}, values));
        if (order == Order::pull_first) send_news();
      }
    });
    Puller puller(peer.port());
    for (int pull = 0; pull < 2; ++pull) {
      const PullResult result = puller.pull();
      CHECK_FALSE(result.failure.has_value());
      CHECK(result.bytes == asked_elements * sizeof(float));
    }
    CHECK(peer.connections() == 1);
    CHECK(news > 0);
  }
}

}  // namespace dpwa
