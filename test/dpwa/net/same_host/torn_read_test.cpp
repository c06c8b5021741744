#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <exception>
#include <optional>
#include <thread>

#include "dpwa/base/random.h"
#include "dpwa/net/peer_channel.h"
#include "test/dpwa/net/conversation.h"
#include "test/dpwa/net/served_node.h"
#include "test/support/eventually.h"
#include "test/support/vector_cluster.h"

namespace dpwa {
namespace {

using namespace std::chrono_literals;
namespace asio = boost::asio;

constexpr std::size_t torn_elements = 1 << 18;  // 1 MiB: several pieces

AlignedBuffer plain(std::size_t bytes) {
  return AlignedBuffer(bytes);
}

// One reader of node w1, without the rounds and back-off of a client.
class Reader {
 public:
  Reader(std::uint16_t port, Codec codec)
      : codec_(codec),
        local_("test", "w2", 3, {"w1"}, test::vector_manifest(torn_elements), 4096, plain),
        landing_(local_.manifest, plain),
        channel_(io_, local_, {"w1", {"127.0.0.1"}, port}, staging_, true) {
    local_.store.publish(*local_.store.begin(), test::sound_progress());
  }
  ~Reader() {
    channel_.close();
    io_.restart();
    io_.run();
  }

  // Begins to read `pause` after the lease began.
  PullResult pull(std::chrono::milliseconds pause) {
    PullResult result;
    pause_ = pause;
    io_.restart();
    asio::co_spawn(io_, pull_once(result), [&](std::exception_ptr failure) {
      if (failure) std::rethrow_exception(failure);
      io_.stop();  // the watch for the end of the connection goes on
    });
    io_.run();
    return result;
  }
  bool landed_whole() const {
    const auto bytes = landing_.bytes();
    const std::span values(reinterpret_cast<const float*>(bytes.data()), torn_elements);
    return std::ranges::all_of(values, [&](float value) { return value == values[0]; });
  }

 private:
  asio::awaitable<void> pull_once(PullResult& result) {
    PullRequest request;
    request.range = {0, local_.manifest.total_bytes()};
    request.codec = codec_;
    request.deadline_ms = 10000;
    result = co_await channel_.ask(request);
    if (result.failure) co_return;
    landing_.begin(LandingMode::difference, local_.store.latest(), request.range);
    std::this_thread::sleep_for(pause_);
    result = co_await channel_.land(landing_);
  }

  const Codec codec_;
  std::chrono::milliseconds pause_{0};
  asio::io_context io_;
  LocalNode local_;
  Landing landing_;
  AlignedBuffer staging_ = ReplyReader::make_staging(1 << 16);
  PeerChannel channel_;
};

}  // namespace

TEST_CASE("a reader whose lease ends while it reads lands whole snapshots, or throws them away") {
  Codec codec = Codec::raw;
  SUBCASE("raw") {}
  SUBCASE("encoded") {
    codec = Codec::int8;
  }
  ServerOptions options;
  options.max_reply_time = 100s;
  test::ServedNode node(torn_elements, options, AlignedBuffer::shared);
  std::atomic<bool> done{false};
  std::thread publisher([&] {
    for (float value = 2; !done; ++value) {
      node.publish(value);
      // A buffer given back between two publishes is the next one to be written.
      std::this_thread::sleep_for(200us);
    }
  });
  Reader reader(node.port(), codec);
  int torn = 0;
  const auto pull = [&](std::chrono::milliseconds pause) {
    const PullResult result = reader.pull(pause);
    if (!result.failure && !reader.landed_whole()) ++torn;
    return result.failure;
  };
  Duration shortest = 100s;  // of a read, wherever the test runs
  for (int i = 0; i < 10; ++i) {
    const auto began = std::chrono::steady_clock::now();
    CHECK(!pull(0ms));
    shortest = std::min<Duration>(shortest, std::chrono::steady_clock::now() - began);
  }

  // Reads that end before, about, and after the end of their leases.
  const auto lease = std::chrono::ceil<std::chrono::milliseconds>(shortest) + 1ms;
  node.allow_replies(lease);
  Random random(4);
  int pulls = 0;
  int discarded = 0;
  const bool seen = test::eventually(
      [&] {
        const auto pause = std::chrono::milliseconds(random.below(2 * lease / 1ms));
        if (pull(++pulls % 2 == 0 ? pause : 0ms) == PeerFailure::timed_out) ++discarded;
        return pulls >= 30 && discarded >= 5;
      },
      100s);
  done = true;
  publisher.join();
  CAPTURE(discarded);
  CHECK(seen);
  CHECK(torn == 0);
  CHECK(node.local().traffic.same_host_leases_expired >= 5);
}

}  // namespace dpwa
