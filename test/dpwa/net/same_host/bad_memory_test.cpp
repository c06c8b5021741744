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

// Answers a pull whose answer may be MAPPED.
using Reply = std::function<void(RawSocket& connection, const PullSeen& request)>;

void unasked(RawSocket&, const PullSeen&) {
  FAIL_CHECK("asked for memory that it has not mapped");
}

// Peer w1, a fake: in its WELCOME it makes an offer, and at the Unix socket it follows `script`.
// Over TCP it serves a vector of 1.5, or what `reply` sends.
class MemoryPeer {
 public:
  explicit MemoryPeer(FakePeer::Script script, Reply reply = unasked,
                      const std::string& boot_id = same_host::boot_id())
      : offer_{boot_id, same_host::unique_socket_name()},
        reply_(std::move(reply)),
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
    while (const auto request = test::read_pull(connection)) {
      if (request->pull.may_map) {
        reply_(connection, *request);
      } else {
        connection.send(test::snapshot_frame(*request, values, test::sound_progress(++version_)));
      }
    }
  }

  const Offer offer_;
  const Reply reply_;
  std::uint64_t version_ = 0;
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
  mapped.place = {0, request.pull.offset, request.pull.length, generation};
  return mapped;
}

Reply answering(std::uint64_t generation) {
  return [=](RawSocket& connection, const PullSeen& request) {
    connection.send(wire::encode(reply_to(request, generation), request.request_id));
  };
}

bool landed_all(const PullingNode& node, float value) {
  return std::ranges::all_of(node.landed(), [=](float landed) { return landed == value; });
}

// A script that shares a file of `bytes` as the first buffer, and says WELCOME as `name`.
// `descriptor` -1: the file does not come along.
FakePeer::Script sharing(int descriptor, std::uint64_t bytes, const std::string& name = "w1") {
  return [=](RawSocket& socket) {
    const auto hello = socket.read_frame();
    if (!hello) return;
    std::vector<int> descriptors;
    if (descriptor >= 0) descriptors.push_back(descriptor);
    test::send_descriptors(socket, wire::encode(wire::Share{0, bytes}, 0), descriptors);
    wire::Welcome welcome;
    welcome.node = name;
    welcome.incarnation = 11;
    socket.send(wire::encode(welcome, hello->header.request_id));
    socket.ended_by_other_side();
  };
}

FakePeer::Script sharing(const MemoryFile& file) {
  return sharing(file.descriptor(), file.size());
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
  MemoryPeer peer(sharing(*file), [&](RawSocket& connection, const PullSeen& request) {
    answering(file->generation())(connection, request);
    const auto release = connection.read_frame();
    CHECK((release && release->header.type == wire::MessageType::release));
  });
  PullingNode node(peer.address());
  REQUIRE(node.pull().outcome == Outcome::mixed);
  CHECK(landed_all(node, in_memory));
  CHECK(node.local().traffic.same_host_pulls == 1);
}

TEST_CASE("an offer from another host is not taken up") {
  MemoryPeer peer([](RawSocket&) {}, unasked, "00000000-0000-0000-0000-000000000000");
  check_falls_back(peer, 0);
}

TEST_CASE("whatever goes wrong at the Unix socket, the same pull goes on over TCP") {
  const auto file = memory_of(in_memory);
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
    script = sharing(file->descriptor(), file->size(), "w3");
  }
  SUBCASE("it refuses") {
    script = [](RawSocket& socket) {
      if (!socket.read_frame()) return;
      socket.send(wire::encode(wire::Reject{wire::RejectCode::model, "the models differ"}, 1));
      socket.ended_by_other_side();
    };
  }
  SUBCASE("it closes instead of an answer") {
    script = [](RawSocket& socket) { socket.read_frame(); };
  }
  SUBCASE("no descriptor where one is announced") {
    script = sharing(-1, file->size());
  }
  SUBCASE("memory of another size than announced") {
    script = sharing(file->descriptor(), file->size() + 4096);
  }
  MemoryPeer peer(script);
  check_falls_back(peer);
}

TEST_CASE("memory that is not there, or holds something else, is not read") {
  auto file = memory_of(in_memory);
  Reply reply = answering(file->generation());
  SUBCASE("memory that was never shared") {
    reply = [](RawSocket& connection, const PullSeen& request) {
      auto mapped = reply_to(request, 2);
      mapped.place.memory = 1;
      connection.send(wire::encode(mapped, request.request_id));
    };
  }
  SUBCASE("memory of another size than the model") {
    file = memory_of(in_memory, 100000);
  }
  SUBCASE("another range than the one asked for") {
    reply = [](RawSocket& connection, const PullSeen& request) {
      auto mapped = reply_to(request, 2);
      mapped.place.bytes += 64;
      connection.send(wire::encode(mapped, request.request_id));
    };
  }
  MemoryPeer peer(sharing(*file), reply);
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
  MemoryPeer peer(sharing(*file), answering(generation));
  PullingNode node(peer.address());
  const Arrival arrival = node.pull();
  CHECK(to_string(arrival.outcome) == to_string(Outcome::timed_out));
  CHECK(node.local().traffic.same_host_reads_discarded == 1);
  CHECK(node.local().traffic.same_host_pulls == 0);
}

TEST_CASE("the deadline ends a pull from a peer that does not answer") {
  const auto file = memory_of(in_memory);
  FakePeer::Script script = sharing(*file);
  SUBCASE("its Unix socket, to the greeting") {
    script = [](RawSocket& socket) { socket.ended_by_other_side(); };
  }
  SUBCASE("to the pull") {}
  MemoryPeer peer(script,
                  [](RawSocket& connection, const PullSeen&) { connection.ended_by_other_side(); });
  PullingNode node(peer.address());
  PullSpec spec;
  spec.timeout = 150ms;
  CHECK(to_string(node.pull(spec).outcome) == to_string(Outcome::timed_out));
}

}  // namespace dpwa
