#include "dpwa/attach/channel.h"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <array>
#include <stdexcept>
#include <thread>

namespace dpwa::attach {
namespace {

struct Pair {
  Pair() {
    std::array<int, 2> ends{};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0);
    a = Channel(FileDescriptor(ends[0]));
    b = Channel(FileDescriptor(ends[1]));
  }
  Channel a;
  Channel b;
};

std::string name_of_this_test() {
  return socket_name("channel_test", std::to_string(::getpid()), 1);
}

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
    REQUIRE(::send(pair.a.socket(), &announced, sizeof announced, 0) == sizeof announced);
  }
  pair.a.close();
  CHECK_FALSE(pair.b.receive());
  CHECK_FALSE(pair.b.is_open());
  CHECK_FALSE(pair.b.send("late"));
}

TEST_CASE("a message that is announced as too long is not waited for") {
  Pair pair;
  const std::uint32_t announced = Channel::max_bytes + 1;
  REQUIRE(::send(pair.a.socket(), &announced, sizeof announced, 0) == sizeof announced);
  CHECK_FALSE(pair.b.receive());
}

TEST_CASE("who waits for a message gives up when told to") {
  Pair pair;
  int asked = 0;
  CHECK_FALSE(pair.b.receive(nullptr, [&] { return ++asked == 2; }));
  CHECK(asked == 2);
}

TEST_CASE("a name has one listener, and callers find it while it is there") {
  const std::string name = name_of_this_test();
  CHECK_FALSE(connect_to(name).is_open());
  {
    const FileDescriptor listener = listen_at(name);
    CHECK_THROWS_WITH_AS(listen_at(name), "a node process of that name runs already",
                         std::runtime_error);
    Channel caller = connect_to(name);
    REQUIRE(caller.is_open());
    CHECK(is_readable(listener.get()));
    Channel accepted = accept_from(listener.get());
    REQUIRE(accepted.is_open());
    caller.send("hello");
    CHECK(accepted.receive() == "hello");
  }
  CHECK_FALSE(connect_to(name).is_open());
}

TEST_CASE("nodes of one host listen under names of their own") {
  CHECK(socket_name("c", "w1", 1) != socket_name("c", "w2", 1));
  CHECK(socket_name("c", "w1", 1) != socket_name("c", "w1", 2));
  CHECK(socket_name("a", "bc", 1) != socket_name("ab", "c", 1));
  CHECK(socket_name(std::string(255, 'c'), std::string(255, 'n'), 65535).size() < 100);
}

}  // namespace dpwa::attach
