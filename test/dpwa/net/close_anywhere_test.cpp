#include <doctest/doctest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <exception>
#include <functional>
#include <memory>
#include <utility>

#include "dpwa/net/peer_channel.h"
#include "test/dpwa/net/secure_nodes.h"
#include "test/dpwa/net/served_node.h"
#include "test/support/eventually.h"
#include "test/support/vector_cluster.h"

namespace dpwa {
namespace {

namespace asio = boost::asio;
using test::ServedNode;

constexpr std::size_t elements = 5000;
constexpr std::size_t chunk_bytes = 4096;

MemberClaim claim(const std::string& name, std::uint16_t port, std::uint64_t incarnation) {
  return {name, {"127.0.0.1"}, port, incarnation, 0, MemberStatus::alive};
}

std::unique_ptr<Members> members_of(const std::string& self, std::uint64_t incarnation) {
  std::vector<MemberClaim> seeds;
  for (const std::string name : {"w1", "w2", "w3"})
    if (name != self) seeds.push_back(claim(name, 7001, 0));
  return std::make_unique<Members>(claim(self, 7000, incarnation), std::move(seeds),
                                   MembershipOptions(), 1);
}

enum class Operation { pull, second_pull, greet, exchange_members };

// One channel of node w2 to w1, and one operation on it, whose steps the test takes itself.
class Steps {
 public:
  Steps(std::uint16_t port, bool same_host, std::shared_ptr<Security> security)
      : local_("test", "w2", 3, {"w1"}, test::vector_manifest(elements), chunk_bytes,
               AlignedBuffer::plain, true, members_of("w2", 3)),
        staging_(ReplyReader::make_staging(chunk_bytes)),
        landing_(local_.manifest, AlignedBuffer::plain),
        channel_(io_, local_, {"w1", {"127.0.0.1"}, port}, staging_, same_host) {
    local_.security = std::move(security);
    local_.store.publish(*local_.store.begin(), {});
  }

  void begin(Operation operation) {
    if (operation == Operation::second_pull) {
      start(pull());
      run();
    }
    switch (operation) {
      case Operation::pull:
      case Operation::second_pull:
        return start(pull());
      case Operation::greet:
        return start(channel_.greet());
      case Operation::exchange_members:
        return start(greet_and_exchange());
    }
  }

  // Begins it and takes `count` steps more; false: it ended before that.
  bool take(int count) {
    while (!begun_ && io_.run_one_for(test::patience) > 0) {
    }
    for (int step = 0; step < count && !ended_; ++step) io_.run_one_for(test::patience);
    return !ended_;
  }
  void run() {
    while (!ended_ && io_.run_one_for(test::patience) > 0) {
    }
    REQUIRE(ended_);
  }
  // The operation ends when the channel is closed, and keeps nothing open.
  void check_ends_with_close() {
    channel_.close();
    io_.run_for(test::patience);
    CHECK(ended_);
    CHECK(io_.stopped());
    CHECK_FALSE(channel_.is_open());
    CHECK_FALSE(channel_.same_host());
  }

 private:
  template <typename Result>
  void start(asio::awaitable<Result> operation) {
    begun_ = ended_ = false;
    io_.restart();
    asio::co_spawn(io_, noted(std::move(operation)),
                   [this](std::exception_ptr error, const Result&) {
                     if (error) std::rethrow_exception(error);
                     ended_ = true;
                   });
  }

  template <typename Result>
  asio::awaitable<Result> noted(asio::awaitable<Result> operation) {
    begun_ = true;
    co_return co_await std::move(operation);
  }

  asio::awaitable<PeerChannel::Greeting> greet_and_exchange() {
    auto greeting = co_await channel_.greet();
    if (greeting.failure) co_return greeting;
    co_return co_await channel_.exchange_members(true);
  }

  asio::awaitable<PullResult> pull() {
    PullRequest request;
    request.range = {0, local_.manifest.exchange_bytes()};
    request.deadline_ms = 20000;
    PullResult result;
    do {
      result = co_await channel_.ask(request);
      if (result.failure) break;
      landing_.begin(LandingMode::values, local_.store.latest(), request.range);
      result = co_await channel_.land(landing_);
    } while (result.ask_again);
    co_return result;
  }

  asio::io_context io_;
  LocalNode local_;
  AlignedBuffer staging_;
  Landing landing_;
  PeerChannel channel_;
  bool begun_ = false;
  bool ended_ = true;
};

// Closes the channel after each number of steps, until one is more than the operation has. A
// deadline closes once: what it cut off must not connect again.
void check_every_step(const ServerOptions& options, bool same_host,
                      const std::function<std::shared_ptr<Security>()>& security) {
  const auto memory = [](std::size_t bytes) { return AlignedBuffer::shared(bytes); };
  ServedNode peer(elements, options, same_host ? BufferAllocator(memory) : BufferAllocator(), true,
                  security(), members_of("w1", 7));
  for (const Operation operation :
       {Operation::pull, Operation::second_pull, Operation::greet, Operation::exchange_members}) {
    CAPTURE(static_cast<int>(operation));
    int taken = 0;
    for (bool more = true; more; ++taken) {
      CAPTURE(taken);
      Steps steps(peer.port(), same_host, security());
      steps.begin(operation);
      more = steps.take(taken);
      steps.check_ends_with_close();
      steps.begin(Operation::pull);
      steps.run();  // whole, or told BUSY: it held a snapshot in vain
      steps.check_ends_with_close();
    }
    CHECK(taken > 1);
  }
}

ServerOptions roomy() {
  ServerOptions options;
  options.connections.per_peer = 1000;
  return options;
}

}  // namespace

TEST_CASE("a channel that is closed at any step of what it does ends that, and opens nothing") {
  test::ClusterKey key;
  SUBCASE("over TCP") {
    check_every_step(roomy(), false, [] { return nullptr; });
  }
  SUBCASE("from a peer's memory") {
    ServerOptions options = roomy();
    options.same_host = true;
    check_every_step(options, true, [] { return nullptr; });
  }
  SUBCASE("over TLS") {
    check_every_step(roomy(), false, [&] { return key.open(); });
  }
}

}  // namespace dpwa
