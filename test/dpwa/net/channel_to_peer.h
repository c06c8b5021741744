#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "dpwa/net/local_node.h"
#include "dpwa/net/peer_channel.h"
#include "test/support/vector_cluster.h"

namespace dpwa::test {

inline MemberClaim claim(const std::string& name, std::uint16_t port, std::uint64_t incarnation) {
  return {name, {"127.0.0.1"}, port, incarnation, 0, MemberStatus::alive};
}

// The channel of node w2 to w1 at `port`. The test runs its io_context.
struct ChannelToPeer {
  static constexpr std::size_t elements = 5000;
  static constexpr std::size_t chunk_bytes = 4096;

  ChannelToPeer(std::uint16_t port, bool same_host, std::unique_ptr<Members> members)
      : local("test", "w2", 3, {"w1"}, vector_manifest(elements), chunk_bytes, AlignedBuffer::plain,
              true, std::move(members)),
        staging(ReplyReader::make_staging(chunk_bytes)),
        landing(local.manifest, AlignedBuffer::plain),
        channel(io, local, {"w1", {"127.0.0.1"}, port}, staging, same_host) {
    local.store.publish(*local.store.begin(), {});
  }

  boost::asio::awaitable<PullResult> pull() {
    PullRequest request;
    request.range = {0, local.manifest.exchange_bytes()};
    request.deadline_ms = 20000;
    PullResult result;
    do {
      result = co_await channel.ask(request);
      if (result.failure) break;
      landing.begin(LandingMode::values, local.store.latest(), request.range);
      result = co_await channel.land(landing);
    } while (result.ask_again);
    co_return result;
  }

  boost::asio::io_context io;
  LocalNode local;
  AlignedBuffer staging;
  Landing landing;
  PeerChannel channel;
};

}  // namespace dpwa::test
