#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "dpwa/net/same_host/offer.h"
#include "test/dpwa/net/conversation.h"
#include "test/dpwa/net/served_node.h"
#include "test/support/eventually.h"
#include "test/support/log_file.h"
#include "test/support/memory_reader.h"
#include "test/support/raw_socket.h"

// What a node makes of a process that finds its Unix socket and does not speak as it should.

namespace dpwa {
namespace {

using namespace std::chrono_literals;
using test::Bytes;
using test::RawSocket;
using test::ServedNode;
using test::sound_hello;

// A node that takes one connection of each kind at a time.
struct OneReader {
  ServedNode node{16, test::OneCaller::options(), AlignedBuffer::shared};

  RawSocket connect() {
    const auto offer = same_host::parse_offer(test::offer_of(node.port(), sound_hello()));
    REQUIRE(offer);
    return test::connect_unix(offer->socket);
  }
  // An honest reader is served, and no lease is left behind.
  void check_unharmed() {
    const bool served = test::eventually([&] {
      try {
        test::MemoryReader honest(node.port(), sound_hello());
        return honest.pull(10s).has_value();
      } catch (const std::runtime_error&) {
        return false;  // the bad one's place is not free yet
      }
    });
    CHECK(served);
    CHECK(test::eventually([&] { return node.free_buffers() == 2; }));
  }
};

std::size_t open_descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    ++count;
  return count;
}

}  // namespace

TEST_CASE("garbage at the Unix socket ends that connection and nothing else") {
  OneReader one;
  {
    RawSocket bad = one.connect();
    SUBCASE("noise") {
      bad.send("GET / HTTP/1.1\r\nHost: here, there and everywhere\r\n\r\n");
    }
    SUBCASE("a request before the greeting") {
      bad.send(wire::encode(wire::Pull{}, 1));
    }
    SUBCASE("a body that is too long for any request") {
      bad.send(test::header(wire::MessageType::hello, std::uint64_t{1} << 40));
    }
    SUBCASE("a release of what was never handed over") {
      bad.send(wire::encode(sound_hello(), 1));
      REQUIRE(bad.read_frame());
      bad.send(wire::encode(wire::Release{true}, 2));
    }
    SUBCASE("a request for parameters, which belongs on the other connection") {
      bad.send(wire::encode(sound_hello(), 1));
      REQUIRE(bad.read_frame());
      bad.send(wire::encode(wire::Pull{}, 2));
    }
    CHECK(bad.ended_by_other_side());
  }
  CHECK(test::eventually([&] { return one.node.local().traffic.protocol_errors == 1; }));
  one.check_unharmed();
}

TEST_CASE("a reader that asks for more, or leaves, before it has released its memory loses it") {
  OneReader one;
  {
    test::MemoryReader bad(one.node.port(), sound_hello());
    REQUIRE(bad.pull(10s));
    int errors = 1;
    SUBCASE("a second request") {
      bad.tcp().send(wire::encode(wire::Pull{.may_map = true, .deadline_ms = 10000}, 3));
      CHECK(bad.tcp().ended_by_other_side());
    }
    SUBCASE("a release that cannot be read") {
      Bytes frame = wire::encode(wire::Release{true}, 2);
      frame.back() ^= std::byte{1};
      bad.tcp().send(frame);
      CHECK(bad.tcp().ended_by_other_side());
    }
    SUBCASE("a release of another request") {
      bad.tcp().send(wire::encode(wire::Release{true}, 1));
      CHECK(bad.tcp().ended_by_other_side());
    }
    SUBCASE("the end of its connection") {
      errors = 0;
    }
    CHECK(one.node.local().traffic.protocol_errors == errors);
  }
  one.check_unharmed();
}

TEST_CASE("a release of what was never handed over ends the connection") {
  OneReader one;
  {
    RawSocket bad(one.node.port());
    REQUIRE(test::introduce(bad));
    bad.send(wire::encode(wire::Release{true}, 2));
    CHECK(bad.ended_by_other_side());
  }
  CHECK(one.node.local().traffic.protocol_errors == 1);
  one.check_unharmed();
}

TEST_CASE("a caller that may not have parameters gets no memory either") {
  OneReader one;
  {
    RawSocket bad = one.connect();
    wire::Hello hello = sound_hello();
    auto code = wire::RejectCode::model;
    SUBCASE("another cluster") {
      hello.cluster = "other";
      code = wire::RejectCode::cluster;
    }
    SUBCASE("another model") {
      hello.fingerprint[0] ^= 1;
    }
    SUBCASE("not of the cluster file") {
      hello.node = "w9";
      code = wire::RejectCode::unknown_node;
    }
    SUBCASE("an observer") {
      hello.role = wire::Role::observer;
      hello.node.clear();
      hello.fingerprint = {};
    }
    bad.send(wire::encode(hello, 1));
    const auto frame = bad.read_frame();
    REQUIRE(frame);
    REQUIRE(frame->header.type == wire::MessageType::reject);
    CHECK(wire::decode_reject(frame->body)->code == code);
    CHECK(bad.ended_by_other_side());
  }
  one.check_unharmed();
}

TEST_CASE("a reader that says nothing is shown out when the handshake is due") {
  ServerOptions options = test::OneCaller::options();
  options.handshake_timeout = 500ms;
  OneReader one{.node = ServedNode(16, options, AlignedBuffer::shared)};
  RawSocket silent = one.connect();
  CHECK(silent.ended_by_other_side());
  one.check_unharmed();
}

TEST_CASE("descriptors that a caller sends are not kept") {
  OneReader one;
  const auto before = open_descriptors();
  {
    RawSocket bad = one.connect();
    const int sent[] = {0, 1, 2, bad.descriptor()};
    const auto hello = wire::encode(sound_hello(), 1);
    REQUIRE(test::send_descriptors(bad, hello, sent));
    REQUIRE(bad.read_frame());
    // The two ends of the connection.
    CHECK(test::eventually([&] { return open_descriptors() <= before + 2; }));
  }
  CHECK(test::eventually([&] { return open_descriptors() == before; }));
  one.check_unharmed();
}

TEST_CASE("a process of another user is shown out before it can say a word") {
  if (::geteuid() != 0) return;  // only root can become somebody else
  const test::LogFile log;
  OneReader one;
  const auto offer = same_host::parse_offer(test::offer_of(one.node.port(), sound_hello()));
  REQUIRE(offer);
  const auto hello = wire::encode(sound_hello(), 1);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    constexpr uid_t nobody = 65534;
    if (::setuid(nobody) != 0) ::_exit(2);
    try {
      RawSocket socket = test::connect_unix(offer->socket);
      socket.send(hello);
      ::_exit(socket.read_frame() ? 1 : 0);
    } catch (const std::runtime_error&) {
      ::_exit(3);
    }
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  // Not by the count of all that were refused: others may find the port as well. The connection is
  // closed before the line is written.
  CHECK(test::eventually([&] { return log.count("refused a process of another user") == 1; }));
  one.check_unharmed();
}

}  // namespace dpwa
