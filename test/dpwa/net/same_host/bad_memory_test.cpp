#include <doctest/doctest.h>

#include <algorithm>
#include <memory>

#include "dpwa/net/same_host/offer.h"
#include "dpwa/snapshot/memory_file.h"
#include "test/dpwa/net/conversation.h"
#include "test/dpwa/net/fake_peer.h"
#include "test/dpwa/net/pulling_node.h"
#include "test/support/eventually.h"
#include "test/support/raw_socket.h"

// What a node makes of a peer of this host whose memory is not what it should be: it never blends
// any of it, and takes the parameters over TCP instead.

namespace dpwa {
namespace {

using namespace std::chrono_literals;
using same_host::Offer;
using test::FakePeer;
using test::PullingNode;
using test::PullSeen;
using test::RawSocket;

constexpr std::size_t elements = 16;
constexpr float over_tcp = 1.5F;
constexpr float in_memory = 2.5F;

// Peer w1, a fake: over TCP it serves a vector of 1.5, in its WELCOME it makes an offer, and at the
// Unix socket it follows `script`.
class MemoryPeer {
 public:
  explicit MemoryPeer(FakePeer::Script script, const std::string& boot_id = same_host::boot_id())
      : offer_{boot_id, same_host::unique_socket_name()},
        unix_(std::move(script), FakePeer::Listener{test::listen_unix(offer_.socket)}),
        tcp_([this](RawSocket& connection) { serve(connection); }) {}

  std::vector<PeerAddress> address() const { return {{"w1", {"127.0.0.1"}, tcp_.port()}}; }
  int unix_connections() const { return unix_.connections(); }

 private:
  void serve(RawSocket& connection) {
    if (!test::welcome(connection, "w1", test::sound_hello().capabilities,
                       same_host::to_text(offer_)))
      return;
    const std::vector<float> values(elements, over_tcp);
    for (std::uint64_t version = 1; const auto request = test::read_pull(connection); ++version)
      connection.send(test::snapshot_frame(*request, values, test::sound_progress(version)));
  }

  const Offer offer_;
  FakePeer unix_;
  FakePeer tcp_;
};

std::shared_ptr<MemoryFile> memory_of(float value, std::size_t count = elements) {
  auto file = MemoryFile::create(count * sizeof(float));
  REQUIRE(file);
  file->begin_write();
  std::fill_n(reinterpret_cast<float*>(file->data()), count, value);
  file->end_write();
  return file;
}

wire::Mapped reply_to(const PullSeen& request, std::uint64_t generation) {
  wire::Mapped mapped;
  mapped.progress = test::sound_progress();
  mapped.offset = request.pull.offset;
  mapped.length = request.pull.length;
  mapped.generation = generation;
  mapped.with_descriptor = true;
  return mapped;
}

bool landed_all(const PullingNode& node, float value) {
  return std::ranges::all_of(node.landed(), [=](float landed) { return landed == value; });
}

// A script that says hello and answers each pull by `reply`.
FakePeer::Script answering(std::function<void(RawSocket&, const PullSeen&)> reply) {
  return [reply = std::move(reply)](RawSocket& connection) {
    if (!test::welcome(connection, "w1")) return;
    while (const auto request = test::read_pull(connection)) reply(connection, *request);
  };
}

void send(RawSocket& socket, const PullSeen& request, const wire::Mapped& mapped, int descriptor) {
  const int descriptors[] = {descriptor};
  test::send_descriptors(socket, wire::encode(mapped, request.request_id), descriptors);
}

void check_falls_back(MemoryPeer& peer, int attempts = 1) {
  PullingNode node(peer.address());
  for (int round = 0; round < 3; ++round) {
    REQUIRE(node.pull().outcome == Outcome::mixed);
    CHECK(landed_all(node, over_tcp));
  }
  CHECK_FALSE(node.client().same_host(0));
  CHECK(node.local().traffic.same_host_pulls == 0);
  CHECK(peer.unix_connections() == attempts);  // not tried again at every pull
}

}  // namespace

TEST_CASE("sound memory is read, and the test's peer is what the others deviate from") {
  const auto file = memory_of(in_memory);
  MemoryPeer peer(answering([&](RawSocket& socket, const PullSeen& request) {
    send(socket, request, reply_to(request, file->generation()), file->descriptor());
    const auto release = socket.read_frame();
    CHECK((release && release->header.type == wire::MessageType::release));
  }));
  PullingNode node(peer.address());
  REQUIRE(node.pull().outcome == Outcome::mixed);
  CHECK(landed_all(node, in_memory));
  CHECK(node.local().traffic.same_host_pulls == 1);
}

TEST_CASE("an offer from another host is not taken up") {
  MemoryPeer peer([](RawSocket&) {}, "00000000-0000-0000-0000-000000000000");
  check_falls_back(peer, 0);
}

TEST_CASE("whatever goes wrong at the Unix socket, the same pull goes on over TCP") {
  FakePeer::Script script;
  SUBCASE("it closes at once") {
    script = [](RawSocket&) {};
  }
  SUBCASE("it speaks something else") {
    script = [](RawSocket& socket) {
      socket.send("220 here is the mail service, how may I help you today?\r\n");
      socket.ended_by_other_side();
    };
  }
  SUBCASE("another node answers there") {
    script = [](RawSocket& socket) {
      test::welcome(socket, "w3");
      socket.ended_by_other_side();
    };
  }
  SUBCASE("it closes instead of an answer") {
    script = [](RawSocket& socket) {
      if (test::welcome(socket, "w1")) test::read_pull(socket);
    };
  }
  SUBCASE("it sends a snapshot in the manner of TCP") {
    script = answering([](RawSocket& socket, const PullSeen& request) {
      socket.send(test::snapshot_frame(request, std::vector<float>(elements, in_memory)));
    });
  }
  SUBCASE("it answers another request") {
    script = answering([](RawSocket& socket, PullSeen request) {
      const auto file = memory_of(in_memory);
      ++request.request_id;
      send(socket, request, reply_to(request, file->generation()), file->descriptor());
    });
  }
  MemoryPeer peer(script);
  check_falls_back(peer);
}

TEST_CASE("memory that is not there, or holds something else, is not read") {
  std::function<void(RawSocket&, const PullSeen&)> reply;
  SUBCASE("no descriptor where one is announced") {
    reply = [](RawSocket& socket, const PullSeen& request) {
      socket.send(wire::encode(reply_to(request, 2), request.request_id));
    };
  }
  SUBCASE("no descriptor at all") {
    reply = [](RawSocket& socket, const PullSeen& request) {
      auto mapped = reply_to(request, 2);
      mapped.with_descriptor = false;
      socket.send(wire::encode(mapped, request.request_id));
    };
  }
  SUBCASE("memory of another size") {
    reply = [](RawSocket& socket, const PullSeen& request) {
      const auto file = memory_of(in_memory, 100000);
      send(socket, request, reply_to(request, file->generation()), file->descriptor());
    };
  }
  SUBCASE("another range than the one asked for") {
    reply = [](RawSocket& socket, const PullSeen& request) {
      const auto file = memory_of(in_memory);
      auto mapped = reply_to(request, file->generation());
      mapped.length += 64;
      send(socket, request, mapped, file->descriptor());
    };
  }
  MemoryPeer peer(answering(reply));
  check_falls_back(peer);
}

TEST_CASE("a snapshot whose memory was taken back while it was read is thrown away") {
  const auto file = memory_of(in_memory);
  const std::uint64_t generation = file->generation();
  SUBCASE("for a snapshot that is there by now") {
    file->begin_write();
    file->end_write();
  }
  SUBCASE("for one that is being written") {
    file->begin_write();
  }
  MemoryPeer peer(answering([&](RawSocket& socket, const PullSeen& request) {
    send(socket, request, reply_to(request, generation), file->descriptor());
  }));
  PullingNode node(peer.address());
  const Arrival arrival = node.pull();
  CHECK(to_string(arrival.outcome) == to_string(Outcome::timed_out));
  CHECK(node.local().traffic.same_host_reads_discarded == 1);
  CHECK(node.local().traffic.same_host_pulls == 0);
}

TEST_CASE("the deadline ends a pull from a peer whose Unix socket does not answer") {
  FakePeer::Script script = [](RawSocket& socket) { socket.ended_by_other_side(); };
  SUBCASE("not even to the greeting") {}
  SUBCASE("to the pull") {
    script = answering([](RawSocket& socket, const PullSeen&) { socket.ended_by_other_side(); });
  }
  MemoryPeer peer(script);
  PullingNode node(peer.address());
  PullSpec spec;
  spec.timeout = 150ms;
  const auto from = std::chrono::steady_clock::now();
  CHECK(to_string(node.pull(spec).outcome) == to_string(Outcome::timed_out));
  CHECK(std::chrono::steady_clock::now() - from < 10s);
}

}  // namespace dpwa
