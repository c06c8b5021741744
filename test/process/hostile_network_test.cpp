#include <doctest/doctest.h>

#include <list>
#include <stdexcept>

#include "dpwa/base/random.h"
#include "dpwa/wire/messages.h"
#include "test/process/cluster_run.h"
#include "test/support/raw_socket.h"

namespace dpwa {
namespace {

using test::ClusterRun;
using test::RawSocket;
using Bytes = std::vector<std::byte>;

Bytes noise(Random& random) {
  Bytes bytes(1 + random.below(3000));
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.below(256));
  return bytes;
}

Bytes hello() {
  const wire::Hello hello{wire::Role::node, 0, "dpwa", "w2", 1, {}};
  return wire::encode(hello, 1);
}

Bytes absurd(wire::MessageType type, std::uint64_t length) {
  const auto header = wire::encode_header({type, 1, length});
  return {header.begin(), header.end()};
}

// Something that no node should send, of another kind every time.
Bytes attack(Random& random) {
  switch (random.below(6)) {
    case 0:
      return noise(random);
    case 1: {  // a frame cut off
      Bytes frame = hello();
      frame.resize(random.below(frame.size()));
      return frame;
    }
    case 2: {  // a frame with a byte changed
      Bytes frame = hello();
      frame[random.below(frame.size())] ^= std::byte{0x10};
      return frame;
    }
    case 3:
      return absurd(wire::MessageType::hello, std::uint64_t{1} << random.below(63));
    case 4: {  // a node with another model, whose manifest never ends
      Bytes frames = hello();
      const Bytes more = absurd(wire::MessageType::manifest, 25'000'000);
      frames.insert(frames.end(), more.begin(), more.end());
      const Bytes rest = noise(random);
      frames.insert(frames.end(), rest.begin(), rest.end());
      return frames;
    }
    default:
      return wire::encode(wire::Pull{}, 1);
  }
}

}  // namespace

TEST_CASE("nodes converge under fire from garbage, truncated and absurd frames") {
  ClusterRun run(4,
                 "gossip: {timeout_ms: 5s, start_wait_ms: 60s, finish_wait_ms: 60s}\n"
                 "transport: {same_host: off}");  // it is TCP that is under fire
  run.start_all({"--step-ms", "4"});
  Random random(11);
  std::list<RawSocket> open;  // some of the attackers stay
  int attacks = 0;
  const auto all_trained = [&] {
    for (const auto& name : run.names()) {
      if (run.steps(name).size() < 250) return false;
    }
    return true;
  };
  const auto deadline = std::chrono::steady_clock::now() + test::run_patience;
  while ((attacks < 200 || !all_trained()) && std::chrono::steady_clock::now() < deadline) {
    for (const std::uint16_t port : run.ports()) {
      try {
        open.emplace_back(port);
        open.back().send(attack(random));
        ++attacks;
      } catch (const std::runtime_error&) {
        // not listening yet
      }
    }
    while (open.size() > 40) open.pop_front();
    open.back().stirs_within(std::chrono::milliseconds(10));
  }
  REQUIRE(attacks >= 200);
  REQUIRE(run.finishes_well());
  for (const auto& name : run.names()) {
    CHECK(run.count(name, 0, "mixed") > 20);
    CHECK(run.last_line(name)["participants"] == 4);
    CHECK(run.last_line(name)["checksum"] == run.last_line("w1")["checksum"]);
    CHECK(run.last_line(name)["error"] < 0.05);
  }
}

}  // namespace dpwa
