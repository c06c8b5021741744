#include "adapters/collective/engine/rendezvous.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <future>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "test/adapters/collective/ranks.h"
#include "test/adapters/doctest_with_torch.h"
#include "test/support/at_once.h"

using namespace dpwa::collective;
using namespace std::chrono_literals;
using dpwa::test::error_of;

namespace {

bool accepts(const char* address, std::uint16_t port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  inet_pton(AF_INET, address, &to.sin_addr);
  const bool connected = connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0;
  close(fd);
  return connected;
}

}  // namespace

TEST_CASE("a rendezvous listens on the address that was named and on no other") {
  const auto host = Rendezvous::listen("127.0.0.2", 10s);
  CHECK(host.port() != 0);
  CHECK(accepts("127.0.0.2", host.port()));
  CHECK_FALSE(accepts("127.0.0.1", host.port()));
}

TEST_CASE("a group that has formed keeps no store open, and works without it") {
  const std::shared_ptr<const Engine> engine = make_engine(EngineKind::gloo);
  auto host = std::make_optional(Rendezvous::listen("127.0.0.1", 20s));
  const std::uint16_t port = host->port();
  std::vector<std::unique_ptr<ProcessGroup>> groups(2);
  dpwa::test::at_once(2, [&](std::size_t rank) {
    GroupOptions options;
    options.rank = static_cast<int>(rank);
    options.size = 2;
    options.form_timeout = 20s;
    if (rank == 0) {
      groups[0] = ProcessGroup::form(engine, *host, options);
      CHECK(host->leave(1, 10s));
    } else {
      auto client = Rendezvous::connect("127.0.0.1", port, 20s);
      groups[1] = ProcessGroup::form(engine, client, options);
      client.leave(1, 10s);
    }
  });
  CHECK(accepts("127.0.0.1", port));
  host.reset();
  CHECK_FALSE(accepts("127.0.0.1", port));
  dpwa::test::at_once(2, [&](std::size_t rank) { Operations(*groups[rank]).barrier(); });
}

TEST_CASE("what one member writes another reads") {
  const auto host = Rendezvous::listen("127.0.0.1", 10s);
  const auto client = Rendezvous::connect(host.host(), host.port(), 10s);
  host.store()->set("key", std::string("value"));
  CHECK(client.store()->get_to_str("key") == "value");
}

TEST_CASE("a port in use is an error in one line") {
  const auto host = Rendezvous::listen("127.0.0.1", 10s);
  const auto error = error_of([&] { Rendezvous::listen("127.0.0.1", 10s, host.port()); });
  CHECK(error.failure() == Failure::usage);
  CHECK(error.reason() ==
        "cannot listen on 127.0.0.1:" + std::to_string(host.port()) + ": Address already in use");
}

TEST_CASE("an address of another machine cannot host a rendezvous") {
  CHECK(error_of([] { Rendezvous::listen("192.0.2.1", 1s); }).failure() == Failure::usage);
  CHECK(error_of([] { Rendezvous::listen("no-such-host.invalid", 1s); })
            .reason()
            .starts_with("no-such-host.invalid: "));
}

TEST_CASE("a rendezvous that is not there fails within the time given") {
  std::uint16_t port = 0;
  { port = Rendezvous::listen("127.0.0.1", 10s).port(); }
  const auto error = error_of([&] { Rendezvous::connect("127.0.0.1", port, 300ms); });
  CHECK(error.failure() == Failure::timeout);
  CHECK(error.operation() == "meeting at 127.0.0.1:" + std::to_string(port));
  CHECK(error.reason() == "nothing answers: Connection refused");
}

TEST_CASE("the host waits until every client has left, but not for ever") {
  auto host = Rendezvous::listen("127.0.0.1", 10s);
  auto first = Rendezvous::connect(host.host(), host.port(), 10s);
  auto second = Rendezvous::connect(host.host(), host.port(), 10s);
  CHECK(first.leave(2, 10s));
  CHECK_FALSE(host.leave(2, 20ms));
  auto drained = std::async(std::launch::async, [&] { return host.leave(2, 20s); });
  CHECK(second.leave(2, 10s));
  CHECK(drained.get());
}

TEST_CASE("the own address is the one on the way to the peer") {
  CHECK(address_towards("127.0.0.1") == "127.0.0.1");
  CHECK(error_of([] { address_towards("no-such-host.invalid"); }).failure() == Failure::usage);
}
