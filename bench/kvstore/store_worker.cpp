#include <chrono>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/exchange.h"
#include "bench/measurers.h"
#include "bench/values.h"
#include "dpwa/config/config.h"
#include "dpwa/config/open_log.h"
#include "dpwa/kvclient/client_options.h"
#include "dpwa/kvclient/store_client.h"
#include "dpwa/kvserver/store_server.h"
#include "dpwa/kvstore/optimizer.h"
#include "dpwa/security/security.h"
#include "dpwa/snapshot/aligned_buffer.h"

namespace dpwa::bench {
namespace {

constexpr auto store_patience = std::chrono::seconds(60);

kvstore::Bytes optimizer_of(const std::string& name) {
  if (name == "none") return {};
  auto options = kvstore::default_options(kvstore::optimizer_kind(name));
  options.learning_rate = 1e-6;
  const auto encoded = encode(options);
  return {encoded.begin(), encoded.end()};
}

std::size_t bytes_of(const Json& job) {
  std::size_t elements = 0;
  for (const Json& each : job.at("elements")) elements += each.get<std::size_t>();
  return elements * sizeof(float);
}

// A worker as training has it: pushes gradients, and takes the values that come back into its
// parameters. One gradient comes back with the answer to its push; of several, the last is pushed
// first and the first value is asked for first, as adapters/kvstore does it.
// Job: {"config": FILE, "name", "elements": [N, ...], "optimizer"}
class StoreWorker : public Exchanger {
 public:
  explicit StoreWorker(const Json& job)
      : config_(load_config(job.at("config").get<std::string>(), job.at("name"))),
        optimizer_(optimizer_of(job.at("optimizer"))),
        gradient_(AlignedBuffer::shared(bytes_of(job))),
        parameters_(gradient_.bytes().size()),
        client_(kvclient::client_options(config_, make_security(config_))) {
    open_log(config_).use();
    fill_with_values(gradient_.bytes(), config_.self_index() + 1);
    fill_with_values(parameters_.bytes(), 0);
    client_.share(gradient_);
    client_.join();
    const auto first = client_.wait_joined(SteadyClock::now() + store_patience);
    if (!first) throw std::runtime_error("the servers have not taken the worker in");
    step_ = *first;
    std::size_t from = 0;
    std::vector<kvclient::Ticket> inits;
    for (const Json& each : job.at("elements")) {
      const std::size_t bytes = each.get<std::size_t>() * sizeof(float);
      const kvstore::Key key = static_cast<std::int64_t>(keys_.size());
      keys_.push_back(
          {gradient_.bytes().subspan(from, bytes), parameters_.bytes().subspan(from, bytes)});
      const kvstore::ValueSpec spec{DType::float32, {bytes / sizeof(float)}};
      inits.push_back(client_.init(key, spec, keys_.back().parameter));
      from += bytes;
    }
    for (const auto ticket : inits) outcome_of(ticket);
    client_.at(step_, true);
  }

 private:
  kvclient::Outcome outcome_of(kvclient::Ticket ticket) {
    auto outcome = client_.wait(ticket, SteadyClock::now() + store_patience);
    if (!outcome) throw std::runtime_error("the store did not answer in time");
    if (outcome->left_out) throw std::runtime_error("the worker was left out");
    if (is_error(outcome->kind)) throw std::runtime_error(outcome->problem);
    if (outcome->kind == kvstore::AnswerKind::dropped ||
        outcome->kind == kvstore::AnswerKind::not_finite)
      throw std::runtime_error("a push did not count");
    return std::move(*outcome);
  }

  void pull_once(Window& window) override {
    const std::uint64_t pushed = client_.traffic().sent;
    const auto begun = SteadyClock::now();
    std::vector<kvclient::Ticket> tickets;
    const bool apart = keys_.size() > 1;
    for (std::size_t i = keys_.size(); i-- > 0;) {
      kvclient::PushTerms terms;
      terms.step = step_;
      terms.merge = kvstore::Merge::mean;
      terms.wants_value = !apart;
      if (!apart) terms.into = keys_[i].parameter;
      terms.optimizer = optimizer_;
      tickets.push_back(client_.push(key_of(i), keys_[i].gradient, std::move(terms), -int(i)));
    }
    ++step_;
    client_.at(step_, true);
    for (std::size_t i = 0; apart && i < keys_.size(); ++i)
      tickets.push_back(client_.pull(key_of(i), step_, -int(i), 0, keys_[i].parameter));
    for (const auto ticket : tickets) {
      for (const auto& part : outcome_of(ticket).values) {
        if (!part && !apart) throw std::runtime_error("a value did not come");
      }
    }
    window.latency_ns.push_back(nanoseconds_since(begun));
    ++window.pulls;
    // What was pushed as it travels, and what came back.
    window.bytes += client_.traffic().sent - pushed + parameters_.bytes().size();
  }

  struct Value {
    std::span<std::byte> gradient;
    std::span<std::byte> parameter;
  };
  static kvstore::Key key_of(std::size_t index) { return static_cast<std::int64_t>(index); }

  const Config config_;
  const kvstore::Bytes optimizer_;
  AlignedBuffer gradient_;
  AlignedBuffer parameters_;
  std::vector<Value> keys_;
  kvclient::StoreClient client_;
  std::uint64_t step_ = 0;
};

// Job: {"config": FILE, "name"}
class StoreServerNode : public Server {
 public:
  explicit StoreServerNode(const Json& job)
      : config_(load_server_config(job.at("config").get<std::string>(), job.at("name"))),
        server_(config_, config_.self) {
    open_log(config_).use();
    server_.start(store_patience);
  }

 private:
  const Config config_;
  kvserver::StoreServer server_;
};

}  // namespace

std::unique_ptr<Measurer> make_store_worker(const Json& job) {
  return std::make_unique<StoreWorker>(job);
}

std::unique_ptr<Measurer> make_store_server(const Json& job) {
  return std::make_unique<StoreServerNode>(job);
}

}  // namespace dpwa::bench
