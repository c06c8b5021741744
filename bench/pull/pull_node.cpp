#include <chrono>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "bench/exchange.h"
#include "bench/measurers.h"
#include "bench/values.h"
#include "dpwa/base/threads.h"
#include "dpwa/config/open_log.h"
#include "dpwa/gossip/gossip_node.h"
#include "dpwa/gossip/host_parameters.h"
#include "dpwa/net/local_node.h"

namespace dpwa::bench {
namespace {

// Job: {"config": FILE, "name": NODE, "tensors": [[name, elements], ...], "blend": bool,
// "peer": PeerId or null}
Manifest manifest_of(const Json& job) {
  std::vector<TensorSpec> tensors;
  for (const Json& entry : job.at("tensors")) {
    TensorSpec tensor;
    tensor.name = entry.at(0).get<std::string>();
    tensor.shape = {entry.at(1).get<std::uint64_t>()};
    tensors.push_back(std::move(tensor));
  }
  return Manifest(std::move(tensors));
}

std::optional<PeerId> peer_of(const Json& job) {
  if (job.at("peer").is_null()) return std::nullopt;
  return job.at("peer").get<PeerId>();
}

// Publishes version after version of one model, whose snapshot buffers are filled once: every
// publish is a new version with checksums of its own, as in training, without the trainer's copy.
// Any thread.
class Publisher {
 public:
  // Fills every buffer of the store with the same values, drawn with `seed`, and publishes.
  Publisher(LocalNode& local, std::uint64_t seed);

  // False when readers hold every other buffer.
  bool publish();

 private:
  Progress next_progress() DPWA_REQUIRES(mutex_);

  LocalNode& local_;
  Mutex mutex_;
  std::uint64_t version_ DPWA_GUARDED_BY(mutex_) = 0;
};

Publisher::Publisher(LocalNode& local, std::uint64_t seed) : local_(local) {
  std::vector<SnapshotStore::Writer> writers;
  while (auto writer = local_.store.begin()) writers.push_back(std::move(*writer));
  fill_with_values(writers.front().bytes(), seed);
  for (std::size_t i = 1; i < writers.size(); ++i) {
    const auto source = writers.front().bytes();
    std::memcpy(writers[i].bytes().data(), source.data(), source.size());
  }
  const MutexLock lock(mutex_);
  local_.store.publish(std::move(writers.front()), next_progress());
}

bool Publisher::publish() {
  const MutexLock lock(mutex_);
  auto writer = local_.store.begin();
  if (!writer) return false;
  local_.store.publish(std::move(*writer), next_progress());
  return true;
}

Progress Publisher::next_progress() {
  Progress progress;
  progress.version = ++version_;
  progress.lineage = 1;
  progress.clock = static_cast<double>(version_);
  progress.loss = 1;
  return progress;
}

// Pulls of a small model are more than the requests a second that a node accepts.
Config config_of(const Json& job) {
  Config config = load_config(job.at("config").get<std::string>(), job.at("name"));
  config.transport.max_requests_per_second = 0;
  return config;
}

// A node as training has it, whose trainer does nothing but publish, pull and blend.
class PullNode : public Exchanger {
 public:
  explicit PullNode(const Json& job)
      : config_(config_of(job)),
        peer_(peer_of(job)),
        blends_(job.at("blend")),
        memory_(blends_ ? manifest_of(job).total_bytes() : 0),
        parameters_(blends_ ? manifest_of(job) : Manifest(), memory_.bytes()),
        node_(config_, manifest_of(job), options()) {
    open_log(config_).use();
    const std::uint64_t seed = config_.self_index() + 1;
    fill_with_values(memory_.bytes(), seed);
    publisher_.emplace(node_.local(), seed);
    // What was served is old news: the next caller gets a new version.
    node_.local().when_served = [this] { publisher_->publish(); };
    node_.start();
    node_.local().state = wire::NodeState::ready;
  }
  ~PullNode() override { node_.stop(); }  // the Rx thread uses the publisher

  Json facts() const override { return {{"chunk_bytes", config_.transport.chunk_bytes}}; }

 private:
  void pull_once(Window& window) override {
    publisher_->publish();
    PullSpec spec;
    spec.peer = peer_;
    spec.timeout = config_.gossip.timeout;
    const auto begun = SteadyClock::now();
    if (!node_.client().begin(spec)) throw std::runtime_error("a pull could not be begun");
    const auto arrival = node_.client().take(spec.timeout * 2);
    const auto landed = nanoseconds_since(begun);
    if (!arrival) throw std::runtime_error("a pull did not end");
    if (arrival->outcome != Outcome::mixed) {
      const std::string outcome(to_string(arrival->outcome));
      window.failed[outcome] = window.failed.value(outcome, 0) + 1;
      if (arrival->outcome != Outcome::skipped && arrival->outcome != Outcome::busy)
        throw std::runtime_error("a pull from '" + arrival->peer_name + "' ended as " + outcome);
      std::this_thread::sleep_for(std::chrono::microseconds(100));  // until there is something new
      return;
    }
    if (blends_) parameters_.blend(node_.client().landing(), 0.5);
    ++window.pulls;
    window.bytes += node_.client().landing().range().length;  // whatever travelled for it
    window.latency_ns.push_back(std::chrono::nanoseconds(arrival->took).count());
    window.trainer_latency_ns.push_back(landed);
  }

  GossipNode::Options options() {
    GossipNode::Options options;
    options.incarnation = 1;
    options.seed = config_.self_index() + 1;
    return options;
  }

  const Config config_;
  const std::optional<PeerId> peer_;
  const bool blends_;
  AlignedBuffer memory_;  // the parameters, when they are blended into
  HostParameters parameters_;
  std::optional<Publisher> publisher_;
  GossipNode node_;
};

}  // namespace

std::unique_ptr<Measurer> make_pull_node(const Json& job) {
  return std::make_unique<PullNode>(job);
}

}  // namespace dpwa::bench
