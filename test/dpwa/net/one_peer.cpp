#include "test/dpwa/net/one_peer.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <utility>

#include "dpwa/net/free_ports.h"

namespace dpwa::test {
namespace {

Config tuned(Config config, const std::function<void(Config&)>& tune) {
  if (tune) tune(config);
  return config;
}

}  // namespace

OnePeer::OnePeer(Reply reply, Duration timeout, const std::function<void(Config&)>& tune,
                 std::uint32_t peer_capabilities)
    : peer_([reply = std::move(reply), peer_capabilities](RawSocket& connection) {
        if (!welcome(connection, "w2", peer_capabilities)) return;
        while (const auto request = read_pull(connection)) reply(connection, *request);
      }),
      node_(tuned(one_peer_config(peer_.port(), timeout), tune), elements, initial) {
  // Of the lineage of the replies, so that they would be blended were they sound.
  node_.gossip().restore({1.0, sound_progress().lineage, 1});
  node_.gossip().start();
}

StepReport OnePeer::step() {
  node_.gossip().update_send([] { return 1.0; });
  return node_.gossip().update_wait();
}

StepReport OnePeer::check_harmless(Outcome expected) {
  const std::vector<float> before(node_.values().begin(), node_.values().end());
  const StepReport report = step();
  CHECK(to_string(report.outcome) == to_string(expected));
  CHECK(report.peer == "w2");
  CHECK(report.factor == 0);
  CHECK(std::ranges::equal(before, node_.values()));
  return report;
}

Config one_peer_config(std::uint16_t peer_port, Duration timeout) {
  Config config = loopback_config({net::free_ports(1)[0], peer_port}, 0);
  config.transport.chunk_bytes = OnePeer::chunk_bytes;
  config.gossip.start_wait = std::chrono::milliseconds(50);
  config.gossip.timeout = timeout;
  config.gossip.step_budget = timeout + patience;  // a step ends with its pull
  return config;
}

std::vector<float> vector_of(float value) {
  return std::vector<float>(OnePeer::elements, value);
}

std::vector<std::byte> sound_reply(const PullSeen& request) {
  return snapshot_frame(request, vector_of(2.5F));
}

void send_first(RawSocket& socket, const PullSeen& request, std::size_t count) {
  const auto frame = sound_reply(request);
  socket.send(std::span(frame).first(count));
}

}  // namespace dpwa::test
