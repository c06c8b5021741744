#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/quantity.h"
#include "bench/worker/worker.h"
#include "dpwa/config/config.h"
#include "dpwa/config/open_log.h"
#include "dpwa/kvclient/store_client.h"
#include "dpwa/kvserver/store_server.h"
#include "dpwa/kvstore/optimizer.h"
#include "dpwa/security/security.h"
#include "dpwa/snapshot/aligned_buffer.h"

namespace dpwa::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;
constexpr auto store_patience = std::chrono::seconds(60);

kvclient::StoreClientOptions options_of(const Config& config) {
  kvclient::StoreClientOptions options;
  options.cluster = config.cluster;
  options.self = {config.self, wall_clock_us()};
  for (const NodeEntry& server : config.kvstore.servers)
    options.servers.push_back({server.name, {server.host}, server.port});
  options.engine.merged = config.kvstore.type == KvstoreType::dist_sync;
  options.compression = config.kvstore.compression;
  options.security = make_security(config);
  options.same_host = config.transport.same_host;
  options.congestion_control = config.transport.congestion_control;
  return options;
}

kvstore::Bytes optimizer_of(const std::string& name) {
  if (name == "none") return {};
  auto options = kvstore::default_options(kvstore::optimizer_kind(name));
  options.learning_rate = 1e-6;
  const auto encoded = encode(options);
  return {encoded.begin(), encoded.end()};
}

// A worker as training has it: pushes one gradient, and takes the value that comes back into its
// parameters. Job: {"config": FILE, "name", "bytes", "optimizer"}
class StoreWorker : public Worker {
 public:
  explicit StoreWorker(const Json& job)
      : config_(load_config(job.at("config").get<std::string>(), job.at("name"))),
        optimizer_(optimizer_of(job.at("optimizer"))),
        gradient_(AlignedBuffer::shared(job.at("bytes").get<std::size_t>())),
        parameters_(gradient_.bytes().size()),
        client_(options_of(config_)) {
    open_log(config_).use();
    fill_with_values(gradient_.bytes(), config_.self_index() + 1);
    fill_with_values(parameters_.bytes(), 0);
    client_.share(gradient_);
    client_.join();
    const auto first = client_.wait_joined(SteadyClock::now() + store_patience);
    if (!first) throw std::runtime_error("the servers have not taken the worker in");
    step_ = *first;
    const kvstore::ValueSpec spec{DType::float32, {gradient_.bytes().size() / sizeof(float)}};
    outcome_of(client_.init(key_, spec, parameters_.bytes()));
    client_.at(step_, true);
  }

 private:
  kvclient::Outcome outcome_of(kvclient::Ticket ticket) {
    auto outcome = client_.wait(ticket, SteadyClock::now() + store_patience);
    if (!outcome) throw std::runtime_error("the store did not answer in time");
    if (outcome->left_out) throw std::runtime_error("the worker was left out");
    if (is_error(outcome->kind)) throw std::runtime_error(outcome->problem);
    if (outcome->kind != kvstore::AnswerKind::counted &&
        outcome->kind != kvstore::AnswerKind::created)
      throw std::runtime_error("a push did not count");
    return std::move(*outcome);
  }

  void pull_once(Window& window) override {
    const std::uint64_t pushed = client_.bytes_pushed();
    const auto begun = SteadyClock::now();
    kvclient::PushTerms terms;
    terms.step = step_++;
    terms.merge = kvstore::Merge::mean;
    terms.wants_value = true;
    terms.into = parameters_.bytes();
    terms.optimizer = optimizer_;
    const auto ticket = client_.push(key_, gradient_.bytes(), std::move(terms));
    client_.at(step_, true);
    for (const auto& part : outcome_of(ticket).values) {
      if (!part) throw std::runtime_error("a value did not come");
    }
    const auto end = SteadyClock::now();
    ++window.pulls;
    // What was pushed as it travels, and what came back.
    window.bytes += client_.bytes_pushed() - pushed + parameters_.bytes().size();
    window.latency_us.push_back(std::chrono::duration<double, std::micro>(end - begun).count());
  }

  const Config config_;
  const kvstore::Key key_ = 0;
  const kvstore::Bytes optimizer_;
  AlignedBuffer gradient_;
  AlignedBuffer parameters_;
  kvclient::StoreClient client_;
  std::uint64_t step_ = 0;
};

// Job: {"config": FILE, "name"}
class StoreServerNode : public Worker {
 public:
  explicit StoreServerNode(const Json& job)
      : config_(load_server_config(job.at("config").get<std::string>(), job.at("name"))),
        server_(config_, config_.self) {
    open_log(config_).use();
    server_.start(store_patience);
  }

 private:
  void pull_once(Window&) override { throw std::logic_error("a server does not pull"); }

  const Config config_;
  kvserver::StoreServer server_;
};

}  // namespace

std::unique_ptr<Worker> make_store_worker(const Json& job) {
  return std::make_unique<StoreWorker>(job);
}

std::unique_ptr<Worker> make_store_server(const Json& job) {
  return std::make_unique<StoreServerNode>(job);
}

}  // namespace dpwa::bench
