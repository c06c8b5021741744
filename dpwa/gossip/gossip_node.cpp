#include "dpwa/gossip/gossip_node.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "dpwa/base/resolve_host.h"
#include "dpwa/base/thread_name.h"
#include "dpwa/base/threads.h"
#include "dpwa/base/time.h"
#include "dpwa/config/resolve.h"
#include "dpwa/gossip/gossip_status.h"
#include "dpwa/gossip/trainer_side.h"
#include "dpwa/net/io_thread.h"
#include "dpwa/net/node_handlers.h"
#include "dpwa/net/server.h"
#include "dpwa/snapshot/sketch.h"

namespace dpwa {

namespace asio = boost::asio;

namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::size_t sketch_piece = std::size_t{1} << 19;  // elements, in well under a millisecond
constexpr auto sketch_patience = std::chrono::milliseconds(200);

std::vector<std::string> peer_names(const Config& config) {
  std::vector<std::string> names;
  for (const NodeEntry& node : config.nodes)
    if (node.name != config.self) names.push_back(node.name);
  return names;
}

std::vector<PeerAddress> peer_addresses(const Config& config) {
  std::vector<PeerAddress> peers;
  for (const NodeEntry& node : config.nodes)
    if (node.name != config.self) peers.push_back(peer_address(node));
  return peers;
}

MemberClaim claim_of(const PeerAddress& address) {
  MemberClaim claim;
  claim.name = address.name;
  claim.addresses = address.addresses;
  // A host that could not be resolved is no address to tell others.
  std::erase_if(claim.addresses, [](const auto& each) { return !is_numeric_host(each); });
  claim.addresses.resize(std::min(claim.addresses.size(), wire::max_member_addresses));
  claim.port = address.port;
  return claim;
}

std::unique_ptr<Members> members_of(const Config& config, const GossipNode::Options& node) {
  const NodeEntry& own = config.self_node();
  MemberClaim self = claim_of(peer_address(own));
  self.incarnation = node.incarnation;
  std::vector<MemberClaim> listed;
  for (const PeerAddress& peer : peer_addresses(config)) listed.push_back(claim_of(peer));
  MembershipOptions options = config.gossip.membership;
  options.max_members = std::max(options.max_members, listed.size());
  auto members = std::make_unique<Members>(std::move(self), std::move(listed), options,
                                           derive_seed(node.seed, {1}));
  for (const PeerAddress& peer : peer_addresses(config)) members->follow(peer.name, peer.host);
  return members;
}

// Nodes of one file state the same deadline. A caller that states a longer one, perhaps to hold a
// snapshot, gets at most the time that an honest node with another file could need.
constexpr Duration shortest_reply_bound = std::chrono::seconds(2);

struct ReplyBounds {
  Duration time;
  Duration full_time;
};

ReplyBounds reply_bounds(const GossipConfig& gossip) {
  const Duration time = std::max<Duration>(shortest_reply_bound, 4 * gossip.timeout);
  return {time, std::max<Duration>({time, gossip.start_wait, gossip.finish_wait / 2})};
}

ServerOptions serving_options(const Config& config) {
  ServerOptions options = server_options(config, config.self_node());
  const ReplyBounds bounds = reply_bounds(config.gossip);
  options.max_reply_time = bounds.time;
  options.max_full_reply_time = bounds.full_time;
  return options;
}

std::unique_ptr<LocalNode> local_node(const Config& config, Manifest manifest,
                                      const GossipNode::Options& options) {
  auto local = std::make_unique<LocalNode>(
      config.cluster, config.self, options.incarnation, peer_names(config), std::move(manifest),
      config.transport.chunk_bytes,
      [&](std::size_t bytes) { return options.allocate(bytes, config.transport.same_host); },
      config.transport.checksum, members_of(config, options));
  local->codec = config.transport.encoding;
  local->now = options.now;
  local->keeps_ledger = options.ledger_factor.has_value();
  local->of_file = listing_of(config) == Listing::listed;
  return local;
}

ClientOptions client_options(const Config& config, const GossipNode::Options& node) {
  ClientOptions options;
  static_cast<PullRunOptions&>(options) = node;
  static_cast<SocketOptions&>(options) = config.transport;
  static_cast<ChunkOptions&>(options) = config.transport;
  options.staleness = config.gossip;
  options.firewall = config.gossip.firewall;
  options.allocate = [allocate = node.allocate](std::size_t bytes) {
    return allocate(bytes, /*shared=*/false);
  };
  options.now = node.now;
  if (config.by_seeds) {
    for (const NodeEntry& seed : config.join) options.seeds.seeds.push_back(peer_address(seed));
    const std::string& bind = config.self_node().bind_address;
    if (!config::is_wildcard(bind)) options.seeds.bind = bind;
  }
  return options;
}

}  // namespace

struct GossipNode::Sketching {
  Sketching(const Manifest& manifest, std::shared_ptr<const Snapshot> held)
      : snapshot(std::move(held)), pass(manifest, snapshot->bytes()) {}
  std::shared_ptr<const Snapshot> snapshot;
  SketchPass pass;
  Duration cost{};
};

GossipNode::GossipNode(const Config& config, Manifest manifest, Options options)
    : endpoint_(config, config.self_node(), local_node(config, std::move(manifest), options),
                serving_options(config),
                [this](const std::string& peer, std::uint64_t incarnation) {
                  if (contacts_.add(peer, incarnation))
                    asio::post(tx_io_, [this] { take_contacts(); });
                }),
      local_(static_cast<LocalNode&>(endpoint_.local())),
      client_(tx_io_, local_, peer_addresses(config), client_options(config, options)) {
  endpoint_.serve_status([this] { return describe(); });
  endpoint_.server().serve_snapshots(local_);
}

GossipNode::~GossipNode() {
  stop();
}

void GossipNode::start(Duration patience) {
  endpoint_.start(patience);
  tx_work_.emplace(tx_io_.get_executor());
  asio::post(tx_io_, [this] { client_.begin_membership(); });
  tx_thread_ = start_background_thread([this] {
    name_thread("dpwa-tx");
    net::run_io(tx_io_);
  });
}

// The Rx thread ends first: a status request in flight asks the Tx thread.
void GossipNode::stop() {
  endpoint_.stop();
  if (tx_thread_.joinable()) {
    take_leave();
    asio::post(tx_io_, [this] {
      client_.stop();
      sketching_.reset();
      tx_work_.reset();
    });
    tx_thread_.join();
  }
}

// A few hear of it, and tell the others.
void GossipNode::take_leave() {
  constexpr std::size_t told = 3;
  constexpr auto patience = std::chrono::seconds(1);
  local_.members->leave();
  std::vector<PeerAddress> addresses;
  for (MemberClaim& member : local_.members->some_running(told))
    addresses.push_back({member.name, std::move(member.addresses), member.port});
  if (!addresses.empty()) client_.visit_all(addresses, false, patience);
}

void GossipNode::take_up(const ReloadPlan& plan) {
  const ReplyBounds bounds = reply_bounds(plan.config.gossip);
  asio::post(endpoint_.io(),
             [this, bounds] { endpoint_.server().allow_replies(bounds.time, bounds.full_time); });
  Members& members = *local_.members;
  for (const auto* nodes : {&plan.joined, &plan.moved}) {
    for (const NodeEntry& node : *nodes) {
      members.list(claim_of(peer_address(node)));
      members.follow(node.name, node.host);
    }
  }
  for (const std::string& name : plan.gone) members.unlist(name);
}

void GossipNode::take_contacts() {
  for (const auto& [peer, incarnation] : contacts_.take()) client_.peer_called(peer, incarnation);
}

void GossipNode::begin_sketch() {
  if (sketching_) return;
  auto snapshot = local_.store.latest();
  if (!snapshot || !sketch_pace_.take(wall_clock_us())) return;
  sketching_ = std::make_unique<Sketching>(local_.manifest, std::move(snapshot));
  sketch_a_piece();
}

// Pulls go on between two pieces.
void GossipNode::sketch_a_piece() {
  if (!sketching_) return;
  const auto from = SteadyClock::now();
  const bool goes_on = sketching_->pass.advance(sketch_piece);
  sketching_->cost += SteadyClock::now() - from;
  if (goes_on) return asio::post(tx_io_, [this] { sketch_a_piece(); });
  sketch_ = sketching_->pass.result();
  sketch_pace_.took(sketching_->cost);
  sketching_.reset();
}

const ModelSketch* GossipNode::recent_sketch() const {
  return sketch_ && std::isfinite(sketch_->norm()) ? &*sketch_ : nullptr;
}

asio::awaitable<std::string> GossipNode::describe() {
  auto on_tx = [](GossipNode* self) -> asio::awaitable<std::string> {
    const Client& client = self->client_;
    self->begin_sketch();
    // The answer has that of a large model once it is ready.
    const auto until = SteadyClock::now() + sketch_patience;
    while (self->sketching_ && SteadyClock::now() < until)
      co_await asio::post(self->tx_io_, asio::use_awaitable);
    const ModelSketch* const sketch = self->recent_sketch();
    const auto same_host = [&client](PeerId peer) { return client.same_host(peer); };
    co_return gossip_status(self->local_, client.table(), client.firewall(), client.ledger(),
                            same_host, sketch, client.now());
  };
  return asio::co_spawn(tx_io_, on_tx(this), asio::use_awaitable);
}

}  // namespace dpwa
