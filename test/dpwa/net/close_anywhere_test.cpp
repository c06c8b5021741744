#include <doctest/doctest.h>

#include <boost/asio/co_spawn.hpp>
#include <exception>
#include <functional>
#include <memory>
#include <utility>

#include "test/dpwa/net/channel_to_peer.h"
#include "test/dpwa/net/secure_nodes.h"
#include "test/dpwa/net/served_node.h"
#include "test/support/eventually.h"

namespace dpwa {
namespace {

namespace asio = boost::asio;
using test::claim;
using test::ServedNode;

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
      : peer_(port, same_host, members_of("w2", 3)) {
    peer_.local.security = std::move(security);
  }

  void begin(Operation operation) {
    if (operation == Operation::second_pull) {
      start(peer_.pull());
      run();
    }
    switch (operation) {
      case Operation::pull:
      case Operation::second_pull:
        return start(peer_.pull());
      case Operation::greet:
        return start(peer_.channel.greet());
      case Operation::exchange_members:
        return start(greet_and_exchange());
    }
  }

  // Begins it and takes `count` steps more; false: it ended before that.
  bool take(int count) {
    while (!begun_ && peer_.io.run_one_for(test::patience) > 0) {
    }
    for (int step = 0; step < count && !ended_; ++step) peer_.io.run_one_for(test::patience);
    return !ended_;
  }
  void run() {
    while (!ended_ && peer_.io.run_one_for(test::patience) > 0) {
    }
    REQUIRE(ended_);
  }
  // The operation ends when the channel is closed, and keeps nothing open.
  void check_ends_with_close() {
    peer_.channel.close();
    peer_.io.run_for(test::patience);
    CHECK(ended_);
    CHECK(peer_.io.stopped());
    CHECK_FALSE(peer_.channel.is_open());
    CHECK_FALSE(peer_.channel.same_host());
  }

 private:
  template <typename Result>
  void start(asio::awaitable<Result> operation) {
    begun_ = ended_ = false;
    peer_.io.restart();
    asio::co_spawn(peer_.io, noted(std::move(operation)),
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
    auto greeting = co_await peer_.channel.greet();
    if (greeting.failure) co_return greeting;
    co_return co_await peer_.channel.exchange_members(true);
  }

  test::ChannelToPeer peer_;
  bool begun_ = false;
  bool ended_ = true;
};

// Closes the channel after each number of steps, until one is more than the operation has. A
// deadline closes once: what it cut off must not connect again.
void check_every_step(const ServerOptions& options, bool same_host,
                      const std::function<std::shared_ptr<Security>()>& security) {
  const auto memory = [](std::size_t bytes) { return AlignedBuffer::shared(bytes); };
  ServedNode peer(test::ChannelToPeer::elements, options,
                  same_host ? BufferAllocator(memory) : BufferAllocator(), true, security(),
                  members_of("w1", 7));
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
  CHECK((peer.local().traffic.same_host_served > 0) == same_host);
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
  SUBCASE("from a peer's memory, asked for over TLS") {
    ServerOptions options = roomy();
    options.same_host = true;
    check_every_step(options, true, [&] { return key.open(); });
  }
}

}  // namespace dpwa
