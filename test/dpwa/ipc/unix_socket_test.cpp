#include <doctest/doctest.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "dpwa/ipc/unix_socket.h"
#include "test/support/raw_socket.h"

namespace dpwa::ipc {
namespace {

using test::RawSocket;

// TCP connections whose close waits for an hour: nobody reads what they have to send.
class Lingering {
 public:
  Lingering() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    REQUIRE(::bind(listener_.get(), generic, size) == 0);
    REQUIRE(::listen(listener_.get(), 16) == 0);
    REQUIRE(::getsockname(listener_.get(), generic, &size) == 0);
    port_ = ntohs(address.sin_port);
  }

  FileDescriptor open() {
    FileDescriptor made(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port_);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const auto* generic = reinterpret_cast<const sockaddr*>(&address);
    REQUIRE(::connect(made.get(), generic, sizeof address) == 0);
    accepted_.emplace_back(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    const linger waits{1, 3600};  // which a test that waits would take
    REQUIRE(::setsockopt(made.get(), SOL_SOCKET, SO_LINGER, &waits, sizeof waits) == 0);
    const std::vector<char> filler(1 << 16);
    while (::send(made.get(), filler.data(), filler.size(), MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
    }
    return made;
  }

 private:
  FileDescriptor listener_;
  std::uint16_t port_ = 0;
  std::vector<FileDescriptor> accepted_;
};

std::size_t open_descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    ++count;
  return count;
}

struct Pair {
  RawSocket ours;
  RawSocket theirs;
};

Pair unix_pair() {
  std::array<int, 2> ends{};
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0);
  return {RawSocket(RawSocket::Adopt{ends[0]}), RawSocket(RawSocket::Adopt{ends[1]})};
}

const std::byte some[] = {std::byte{1}};

// Hands it over for good: the receiver's is the last.
void hand_over(RawSocket& socket, std::vector<FileDescriptor> files) {
  std::vector<int> numbers;
  for (const auto& file : files) numbers.push_back(file.get());
  REQUIRE(test::send_descriptors(socket, some, numbers));
}

std::vector<FileDescriptor> lingering(Lingering& connections, int count) {
  std::vector<FileDescriptor> made;
  for (int i = 0; i < count; ++i) made.push_back(connections.open());
  return made;
}

struct MessagePair {
  MessagePair() {
    std::array<int, 2> ends{};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0);
    a = MessageSocket(FileDescriptor(ends[0]));
    b = MessageSocket(FileDescriptor(ends[1]));
  }
  MessageSocket a;
  MessageSocket b;
};

}  // namespace

TEST_CASE("nothing that another user hands over keeps the thread waiting when it is thrown away") {
  Lingering connections;
  auto [ours, theirs] = unix_pair();
  SUBCASE("in messages that nobody has received") {
    hand_over(theirs, lingering(connections, 1));
    hand_over(theirs, lingering(connections, 2));
    shut_out(ours.descriptor());
    CHECK_FALSE(theirs.send(some));  // nothing comes after
  }
  SUBCASE("within a Unix socket that is handed over") {
    std::array<int, 2> inner{};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, inner.data()) == 0);
    FileDescriptor carrier(inner[0]);
    {
      RawSocket filler(RawSocket::Adopt{inner[1]});
      hand_over(filler, lingering(connections, 1));
    }
    std::vector<FileDescriptor> files;
    files.push_back(std::move(carrier));
    hand_over(theirs, std::move(files));
    shut_out(ours.descriptor());
  }
  const std::string name = "dpwa-linger-test-" + std::to_string(::getpid());
  SUBCASE("in a connection that nobody has accepted") {
    FileDescriptor listener = listen_at(name);
    RawSocket caller = test::connect_unix(name);
    hand_over(caller, lingering(connections, 1));
    stop_listening(listener.get());
    listener = {};
    CHECK_FALSE(connect_to(name).has_value());
  }
  SUBCASE("in a connection to a listening socket that is handed over") {
    std::vector<FileDescriptor> files;
    files.push_back(listen_at(name));
    RawSocket caller = test::connect_unix(name);
    hand_over(caller, lingering(connections, 1));
    hand_over(theirs, std::move(files));
    shut_out(ours.descriptor());
  }
}

TEST_CASE("a process of another user is neither accepted nor called") {
  if (::geteuid() != 0) return;  // only root can become somebody else
  const std::string name = "dpwa-unix-socket-test-" + std::to_string(::getpid());
  const std::string theirs = name + "-theirs";
  std::array<int, 2> ready{};
  std::array<int, 2> over{};
  REQUIRE(::pipe2(ready.data(), O_CLOEXEC) == 0);
  REQUIRE(::pipe2(over.data(), O_CLOEXEC) == 0);
  const FileDescriptor listener = listen_at(name);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    constexpr uid_t nobody = 65534;
    if (::setuid(nobody) != 0) ::_exit(2);
    try {
      const FileDescriptor taken = listen_at(theirs);
      const bool called = connect_to(name).has_value();
      char done = 0;
      ::close(over[1]);
      if (::write(ready[1], &done, 1) != 1 || ::read(over[0], &done, 1) != 0) ::_exit(3);
      ::_exit(called ? 1 : 0);
    } catch (const std::system_error&) {
      ::_exit(4);
    }
  }
  char done = 0;
  CHECK(::read(ready[0], &done, 1) == 1);
  CHECK_FALSE(accept_from(listener.get()).valid());
  const auto called = connect_to(theirs);
  CHECK((!called && called.error() == "belongs to another user"));
  for (const int end : over) ::close(end);
  for (const int end : ready) ::close(end);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("one descriptor of a message is kept, and no other stays open") {
  auto [ours, theirs] = unix_pair();
  std::array<std::byte, 8> bytes;
  FileDescriptor kept;
  int first = -1;
  const auto before = open_descriptors();
  for (int i = 0; i < 2; ++i) {
    std::vector<FileDescriptor> files;
    for (int j = 0; j < 3; ++j) {
      std::array<int, 2> pipe{};
      REQUIRE(::pipe2(pipe.data(), O_CLOEXEC) == 0);
      const FileDescriptor writes(pipe[1]);
      files.emplace_back(pipe[0]);
    }
    hand_over(theirs, std::move(files));
    Read read(bytes, 1, &kept);
    REQUIRE_FALSE(read.step(ours.descriptor()));
    CHECK(read.bytes() == 1);
    REQUIRE(kept.valid());
    if (i == 0) first = kept.get();
  }
  CHECK(kept.get() != first);
  CHECK(::fcntl(first, F_GETFD) == -1);
  CHECK(open_descriptors() == before + 1);
}

TEST_CASE("without a place for them no descriptors are taken") {
  auto [ours, theirs] = unix_pair();
  const auto before = open_descriptors();
  REQUIRE(test::send_descriptors(theirs, some, std::array{0, 1}));
  std::array<std::byte, 1> bytes;
  Read read(bytes, 1, nullptr);
  CHECK_FALSE(read.step(ours.descriptor()));
  CHECK(open_descriptors() == before);
}

TEST_CASE("messages of any length arrive whole, in their order, with what comes along") {
  MessagePair pair;
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
  MessagePair pair;
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
  MessagePair pair;
  const std::uint32_t announced = MessageSocket::max_bytes + 1;
  REQUIRE(::send(pair.a.descriptor(), &announced, sizeof announced, 0) == sizeof announced);
  CHECK_FALSE(pair.b.receive());
}

TEST_CASE("a reader that waits for a message gives up when told to") {
  MessagePair pair;
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
