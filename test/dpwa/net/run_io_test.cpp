#include "dpwa/net/run_io.h"

#include <doctest/doctest.h>

#include <boost/asio/post.hpp>
#include <memory>
#include <new>
#include <stdexcept>

#include "test/dpwa/net/pulling_node.h"
#include "test/dpwa/net/served_node.h"

namespace dpwa {
namespace {

namespace asio = boost::asio;

MemberClaim claim(const std::string& name, std::uint16_t port) {
  return {name, {"127.0.0.1"}, port, 3, 0, MemberStatus::alive};
}

}  // namespace

TEST_CASE("a network thread goes on after a handler that fails, whatever it throws") {
  asio::io_context io(1);
  int lost = 0;
  int ran = 0;
  asio::post(io, [] { throw std::invalid_argument("an address that is not numeric"); });
  asio::post(io, [&ran] { ++ran; });
  asio::post(io, [] { throw std::bad_alloc(); });
  asio::post(io, [&ran] { ++ran; });
  net::run_io(io, [&lost] { ++lost; });
  CHECK(ran == 2);
  CHECK(lost == 2);
}

TEST_CASE("a network thread goes on where the handler that failed was all its work") {
  asio::io_context io(1);
  bool ran = false;
  asio::post(io, [] { throw std::bad_alloc(); });
  net::run_io(io, [&] { asio::post(io, [&ran] { ran = true; }); });
  CHECK(ran);
}

TEST_CASE("a pull that fails by a defect of this node costs that pull alone") {
  const auto members = [](const MemberClaim& self, const MemberClaim& other) {
    return std::make_unique<Members>(self, std::vector{other}, MembershipOptions{}, 1);
  };
  test::ServedNode peer(16, {}, {}, true, nullptr, members(claim("w1", 1), claim("w2", 1)));
  // A claim without a port cannot be encoded; no file gives one.
  test::PullingNode node({{"w1", {"127.0.0.1"}, peer.port()}}, 16, 1, true, nullptr,
                         test::plain_memory, members(claim("w2", 0), claim("w1", peer.port())));
  for (int pull = 0; pull < 3; ++pull) CHECK(node.pull().outcome == Outcome::unreachable);
}

}  // namespace dpwa
