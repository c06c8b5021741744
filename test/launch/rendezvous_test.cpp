#include "adapters/launch/rendezvous.h"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <string>

#include "dpwa/collective/error.h"

namespace dpwa::launch {
namespace {

using namespace std::chrono_literals;
using collective::CollectiveError;
using collective::Failure;

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

template <typename Action>
CollectiveError error_of(const Action& action) {
  try {
    action();
  } catch (const CollectiveError& error) {
    return error;
  }
  FAIL("no error");
  return {Failure::usage, "", "", ""};
}

}  // namespace

TEST_CASE("a rendezvous listens on the address that was named and on no other") {
  const auto host = Rendezvous::listen("127.0.0.2", 10s);
  CHECK(host.port() != 0);
  CHECK(accepts("127.0.0.2", host.port()));
  CHECK_FALSE(accepts("127.0.0.1", host.port()));
}

TEST_CASE("a port in use is an error in one line") {
  const auto host = Rendezvous::listen("127.0.0.1", 10s);
  const auto error = error_of([&] { Rendezvous::listen("127.0.0.1", 10s, host.port()); });
  CHECK(error.failure() == Failure::usage);
  CHECK(error.reason().starts_with("cannot listen on 127.0.0.1:" + std::to_string(host.port()) +
                                   ", which process " + std::to_string(::getpid()) + " ("));
  CHECK(error.reason().ends_with(") has: Address already in use"));
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

}  // namespace dpwa::launch
