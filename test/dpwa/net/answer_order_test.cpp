#include <doctest/doctest.h>

#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dpwa/net/local_node.h"
#include "dpwa/net/peer_channel.h"
#include "test/dpwa/net/conversation.h"
#include "test/dpwa/net/fake_peer.h"
#include "test/support/eventually.h"
#include "test/support/vector_cluster.h"

namespace dpwa {
namespace {

namespace asio = boost::asio;
using test::RawSocket;
using wire::MessageType;

constexpr std::size_t elements = 5000;
constexpr std::size_t chunk_bytes = 4096;

MemberClaim claim_of(const std::string& name, std::uint64_t incarnation) {
  return {name, {"127.0.0.1"}, 7000, incarnation, 0, MemberStatus::alive};
}

std::vector<std::byte> news_of_w1(std::uint32_t request_id) {
  MemberExchange exchange;
  exchange.claims = {claim_of("w1", 11)};
  return wire::encode(exchange, request_id);
}

// The channel of node w2 to w1.
class Puller {
 public:
  explicit Puller(std::uint16_t port)
      : local_("test", "w2", 3, {"w1"}, test::vector_manifest(elements), chunk_bytes,
               AlignedBuffer::plain, true,
               std::make_unique<Members>(claim_of("w2", 3), std::vector{claim_of("w1", 0)},
                                         MembershipOptions(), 1)),
        staging_(ReplyReader::make_staging(chunk_bytes)),
        landing_(local_.manifest, AlignedBuffer::plain),
        channel_(io_, local_, {"w1", {"127.0.0.1"}, port}, staging_, false) {
    local_.store.publish(*local_.store.begin(), {});
  }

  PullResult pull() {
    std::optional<PullResult> result;
    io_.restart();
    asio::co_spawn(io_, ask_and_land(), [&](std::exception_ptr error, PullResult pulled) {
      if (error) std::rethrow_exception(error);
      result = std::move(pulled);
    });
    while (!result && io_.run_one_for(test::patience) > 0) {
    }
    REQUIRE(result);
    return std::move(*result);
  }

 private:
  asio::awaitable<PullResult> ask_and_land() {
    PullRequest request;
    request.range = {0, local_.manifest.exchange_bytes()};
    request.deadline_ms = 20000;
    PullResult result = co_await channel_.ask(request);
    if (!result.failure) {
      landing_.begin(LandingMode::values, local_.store.latest(), request.range);
      result = co_await channel_.land(landing_);
    }
    co_return result;
  }

  asio::io_context io_;
  LocalNode local_;
  AlignedBuffer staging_;
  Landing landing_;
  PeerChannel channel_;
};

}  // namespace

TEST_CASE("news and a pull leave together, and are answered in either order") {
  enum class Order { news_first, pull_first, news_with_next_pull };
  for (const Order order : {Order::news_first, Order::pull_first, Order::news_with_next_pull}) {
    CAPTURE(static_cast<int>(order));
    const std::vector<float> values(elements, 2.5F);
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
      CHECK(result.bytes == elements * sizeof(float));
    }
    CHECK(peer.connections() == 1);
    CHECK(news > 0);
  }
}

TEST_CASE("an answer to no request ends the connection") {
  std::uint32_t wrong_id = 0;
  auto type = MessageType::busy;
  SUBCASE("of another number") {
    wrong_id = 1000;
  }
  SUBCASE("of a type that does not answer it") {
    type = MessageType::members;
  }
  test::FakePeer peer([&](RawSocket& socket) {
    if (!test::welcome(socket, "w1", test::sound_hello().capabilities)) return;
    const auto request = test::read_pull(socket);
    if (!request) return;
    const std::uint32_t id = request->request_id + wrong_id;
    socket.send(type == MessageType::members ? news_of_w1(id) : wire::encode_empty(type, id));
    socket.ended_by_other_side();
  });
  Puller puller(peer.port());
  CHECK(puller.pull().failure == PeerFailure::protocol);
}

}  // namespace dpwa
