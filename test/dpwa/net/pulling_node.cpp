#include "test/dpwa/net/pulling_node.h"

#include <boost/asio/post.hpp>
#include <stdexcept>
#include <utility>

#include "dpwa/net/io_thread.h"
#include "test/support/eventually.h"
#include "test/support/vector_cluster.h"

namespace dpwa::test {
namespace {

std::vector<std::string> names_of(const std::vector<PeerAddress>& peers) {
  std::vector<std::string> names;
  for (const PeerAddress& peer : peers) names.push_back(peer.name);
  return names;
}

ClientOptions client_options(std::uint64_t seed, bool same_host, const BufferAllocator& allocate) {
  ClientOptions options;
  options.same_host = same_host;
  options.seed = seed;
  options.allocate = allocate;
  // Else a first pull is only measured where another peer has not been heard (docs/FIREWALL.md).
  options.firewall.distance = DistancePolicy::warn;
  return options;
}

}  // namespace

AlignedBuffer plain_memory(std::size_t bytes) {
  return AlignedBuffer(bytes);
}

PullingNode::PullingNode(std::vector<PeerAddress> peers, std::size_t elements, std::uint64_t seed,
                         bool same_host, std::shared_ptr<Security> security,
                         const BufferAllocator& allocate, std::unique_ptr<Members> members)
    : local_("test", "w2", 3, names_of(peers), vector_manifest(elements), 4096, allocate, true,
             std::move(members)),
      client_(io_, local_, std::move(peers), client_options(seed, same_host, allocate)),
      work_(io_.get_executor()),
      thread_([this] { net::run_io(io_); }) {
  local_.security = std::move(security);
  Progress progress;
  progress.version = 1;
  progress.lineage = 5;
  progress.clock = 1;
  local_.store.publish(*local_.store.begin(), progress);
}

PullingNode::~PullingNode() {
  stop();
}

void PullingNode::stop() {
  if (!thread_.joinable()) return;
  boost::asio::post(io_, [this] {
    client_.stop();
    work_.reset();
  });
  thread_.join();
}

Arrival PullingNode::pull() {
  PullSpec spec;
  spec.timeout = patience;
  return pull(spec);
}

Arrival PullingNode::pull(const PullSpec& spec) {
  if (!client_.begin(spec)) throw std::logic_error("a pull is under way");
  auto arrival = client_.take(spec.timeout + patience);
  if (!arrival) throw std::runtime_error("the pull did not end");
  return *arrival;
}

std::span<const float> PullingNode::landed() const {
  const auto bytes = client_.landing().bytes();
  return {reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float)};
}

}  // namespace dpwa::test
