#include "dpwa/ipc/message_socket.h"

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <string>
#include <system_error>
#include <thread>

namespace dpwa::ipc {
namespace {

struct Pair {
  Pair() {
    std::array<int, 2> ends{};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0);
    a = MessageSocket(FileDescriptor(ends[0]));
    b = MessageSocket(FileDescriptor(ends[1]));
  }
  MessageSocket a;
  MessageSocket b;
};

}  // namespace

TEST_CASE("messages of any length arrive whole, in their order, with what comes along") {
  Pair pair;
  std::thread sender([&] {
    pair.a.send("");
    pair.a.send("one", STDIN_FILENO);
    pair.a.send(std::string(std::size_t{5} << 20, 'x'));
  });
  FileDescriptor file;
  CHECK(pair.b.receive(&file) == "");
  CHECK_FALSE(file.valid());
  CHECK(pair.b.receive(&file) == "one");
  CHECK(file.valid());
  CHECK(pair.b.receive() == std::string(std::size_t{5} << 20, 'x'));
  sender.join();
}

TEST_CASE("an end that is gone closes the channel, in the middle of a message too") {
  Pair pair;
  SUBCASE("at once") {}
  SUBCASE("after a part") {
    const std::uint32_t announced = 100;
    REQUIRE(::send(pair.a.descriptor(), &announced, sizeof announced, 0) == sizeof announced);
  }
  pair.a.close();
  CHECK_FALSE(pair.b.receive());
  CHECK_FALSE(pair.b.is_open());
  CHECK_FALSE(pair.b.send("late"));
}

TEST_CASE("a message that is announced as too long is not waited for") {
  Pair pair;
  const std::uint32_t announced = MessageSocket::max_bytes + 1;
  REQUIRE(::send(pair.a.descriptor(), &announced, sizeof announced, 0) == sizeof announced);
  CHECK_FALSE(pair.b.receive());
}

TEST_CASE("a reader that waits for a message gives up when told to") {
  Pair pair;
  int asked = 0;
  CHECK_FALSE(pair.b.receive(nullptr, [&] { return ++asked == 2; }));
  CHECK(asked == 2);
}

TEST_CASE("a name has one listener, and callers find it while it is there") {
  const std::string name = "dpwa-message-socket-test-" + std::to_string(::getpid());
  CHECK_FALSE(connect_to(name).has_value());
  {
    const FileDescriptor listener = listen_at(name);
    CHECK_THROWS_AS(listen_at(name), std::system_error);
    auto connected = connect_to(name);
    REQUIRE(connected.has_value());
    MessageSocket caller(std::move(*connected));
    CHECK(is_readable(listener.get()));
    MessageSocket accepted(accept_from(listener.get()));
    REQUIRE(accepted.is_open());
    caller.send("hello");
    CHECK(accepted.receive() == "hello");
  }
  CHECK_FALSE(connect_to(name).has_value());
}

}  // namespace dpwa::ipc
