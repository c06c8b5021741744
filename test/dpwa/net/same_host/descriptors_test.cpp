#include "dpwa/net/same_host/descriptors.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <vector>

#include "test/support/eventually.h"
#include "test/support/unix_socket.h"

namespace dpwa {
namespace {

using test::RawSocket;

// TCP connections whose close waits for `patience`: nobody reads what they have to send.
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
    const linger waits{1, static_cast<int>(test::patience.count())};
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

}  // namespace

TEST_CASE("no descriptor that a peer hands over keeps the thread waiting when it is closed") {
  Lingering connections;
  const auto begun = [] { return std::chrono::steady_clock::now(); };
  std::chrono::steady_clock::time_point from;
  SUBCASE("itself") {
    auto file = connections.open();
    from = begun();
    same_host::discard(std::move(file));
  }
  SUBCASE("several in a message of which one is kept") {
    auto [ours, theirs] = unix_pair();
    hand_over(theirs, lingering(connections, 3));
    FileDescriptor kept;
    std::array<std::byte, 8> bytes;
    from = begun();
    CHECK(same_host::receive(ours.descriptor(), bytes, &kept) == 1);
    CHECK(kept.valid());
    same_host::discard(std::move(kept));
  }
  SUBCASE("in messages that nobody has received") {
    auto [ours, theirs] = unix_pair();
    hand_over(theirs, lingering(connections, 1));
    hand_over(theirs, lingering(connections, 2));
    from = begun();
    same_host::discard_received(ours.descriptor());
    CHECK_FALSE(theirs.send(some));  // nothing comes after
  }
  SUBCASE("within a Unix socket that is handed over") {
    auto [ours, theirs] = unix_pair();
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
    from = begun();
    same_host::discard_received(ours.descriptor());
  }
  CHECK(begun() - from < test::patience / 4);
}

TEST_CASE("a descriptor that came earlier makes room for the next, and neither stays open") {
  auto [ours, theirs] = unix_pair();
  std::array<std::byte, 8> bytes;
  FileDescriptor kept;
  int first = -1;
  for (int i = 0; i < 2; ++i) {
    std::array<int, 2> pipe{};
    REQUIRE(::pipe2(pipe.data(), O_CLOEXEC) == 0);
    const FileDescriptor writes(pipe[1]);
    std::vector<FileDescriptor> files;
    files.emplace_back(pipe[0]);
    hand_over(theirs, std::move(files));
    REQUIRE(same_host::receive(ours.descriptor(), bytes, &kept) == 1);
    REQUIRE(kept.valid());
    if (i == 0) first = kept.get();
  }
  CHECK(kept.get() != first);
  CHECK(::fcntl(first, F_GETFD) == -1);
}

}  // namespace dpwa
