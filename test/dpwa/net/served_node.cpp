#include "test/dpwa/net/served_node.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/post.hpp>
#include <boost/endian/conversion.hpp>
#include <utility>
#include <vector>

#include "dpwa/base/checksum.h"
#include "dpwa/net/io_thread.h"
#include "dpwa/net/node_handlers.h"
#include "test/dpwa/net/pulling_node.h"
#include "test/support/eventually.h"
#include "test/support/vector_cluster.h"

namespace dpwa::test {
namespace {

constexpr std::size_t chunk_bytes = 512 * 1024;

boost::asio::awaitable<std::string> no_status() {
  co_return "{}";
}

}  // namespace

ServedNode::ServedNode(std::size_t elements, ServerOptions options, BufferAllocator allocate,
                       bool chunk_checksums, std::shared_ptr<Security> security,
                       std::unique_ptr<Members> members, std::unique_ptr<RequestHandler> handler)
    : local_("test", "w1", 7, {"w2", "w3"}, vector_manifest(elements), chunk_bytes,
             allocate ? std::move(allocate) : BufferAllocator(plain_memory), chunk_checksums,
             std::move(members)),
      server_(io_, local_, std::move(options), {}) {
  local_.security = std::move(security);
  server_.serve_snapshots(local_);
  server_.add(std::make_unique<StatusHandler>(no_status));
  if (handler) server_.add(std::move(handler));
  port_ = server_.listen();
  server_.serve();
  thread_ = std::thread([this] { net::run_io(io_); });
  publish(1.0F);
  local_.state = wire::NodeState::ready;
}

ServedNode::~ServedNode() {
  stop();
}

void ServedNode::stop() {
  if (!thread_.joinable()) return;
  boost::asio::post(io_, [this] { server_.stop(); });
  thread_.join();
}

bool ServedNode::publish(float value) {
  auto writer = local_.store.begin();
  if (!writer) return false;
  const auto bytes = writer->bytes();
  std::ranges::fill(std::span(reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)),
                    value);
  const auto latest = local_.store.latest();
  Progress progress;
  progress.version = latest ? latest->progress().version + 1 : 1;
  progress.lineage = 5;
  progress.clock = static_cast<double>(progress.version);
  local_.store.publish(std::move(*writer), progress);
  return true;
}

std::size_t ServedNode::free_buffers() {
  std::vector<SnapshotStore::Writer> held;
  while (auto writer = local_.store.begin()) held.push_back(std::move(*writer));
  return held.size();
}

void ServedNode::allow_replies(Duration most) {
  boost::asio::post(io_, [this, most] { server_.allow_replies(most, most); });
}

bool ServedNode::serves_an_honest_peer() {
  const std::size_t elements = local_.manifest.total_bytes() / sizeof(float);
  return eventually([&] {
    PullingNode honest({{"w1", {"127.0.0.1"}, port_}}, elements);
    return honest.pull().outcome == Outcome::mixed;
  });
}

ServerOptions OneCaller::options() {
  ServerOptions options;
  options.connections.in_all = 1;
  return options;
}

void OneCaller::check_unharmed() {
  CHECK(node.serves_an_honest_peer());
  CHECK(eventually([&] { return node.free_buffers() == 2; }));
  CHECK(node.local().store.latest()->progress().version == 1);
}

Bytes header(wire::MessageType type, std::uint64_t body_bytes) {
  const auto bytes = wire::encode_header({type, 1, body_bytes});
  return {bytes.begin(), bytes.end()};
}

Bytes patched(Bytes frame, std::size_t offset, std::uint8_t value) {
  frame.at(offset) = std::byte{value};
  boost::endian::store_little_u32(
      reinterpret_cast<unsigned char*>(frame.data()) + wire::header_bytes - 4,
      crc32c(std::span(frame).first(wire::header_bytes - 4)));
  return frame;
}

Bytes joined(Bytes a, const Bytes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace dpwa::test
