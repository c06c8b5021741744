// A worker of the store that trains without torch: it fits vectors to targets that differ from
// worker to worker, with gradients that are a function of weights, step and worker.
//
// usage: dpwa_store_trainer CLUSTER_FILE NAME STEPS OPTIMIZER PAUSE_MS OUTPUT
//
// Writes "joined N" and then "step N" to OUTPUT, "memory 1" when a server reads its gradients where
// they are, and in the end the weights to OUTPUT.weights. When it is left out, it takes part again
// and writes "joined N" once more.

#include <chrono>
#include <cstring>
#include <fstream>
#include <iostream>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "dpwa/config/config.h"
#include "dpwa/kvclient/store_client.h"
#include "dpwa/kvstore/optimizer.h"
#include "dpwa/security/security.h"
#include "dpwa/snapshot/aligned_buffer.h"
#include "test/support/temporary_directory.h"

namespace {

using namespace dpwa;
using SteadyClock = std::chrono::steady_clock;

constexpr auto patience = std::chrono::seconds(100);

struct Parameter {
  Parameter(kvstore::Key its_key, std::size_t elements)
      : key(std::move(its_key)),
        weights(elements, 1),
        memory(AlignedBuffer::shared(elements * sizeof(float))) {}
  std::span<float> gradient() {
    return {reinterpret_cast<float*>(memory.bytes().data()), weights.size()};
  }

  kvstore::Key key;
  std::vector<float> weights;
  AlignedBuffer memory;  // of the gradient
};

struct LeftOut {};

// The last one is cut into slices over all servers.
std::vector<Parameter> values_of_model() {
  std::vector<Parameter> values;
  for (const std::size_t elements : {10, 1, 300, 64, 7, 1'000'000}) {
    const int key = static_cast<int>(values.size());
    values.emplace_back(kvstore::Key(key), elements);
  }
  return values;
}

// In [0, 1), of the place alone.
float noise(std::uint64_t place) {
  place = (place ^ (place >> 30)) * 0xbf58476d1ce4e5b9;
  place = (place ^ (place >> 27)) * 0x94d049bb133111eb;
  return static_cast<float>((place ^ (place >> 31)) >> 40) / 16777216.0F;
}

void compute_gradient(Parameter& value, std::uint64_t step, std::uint64_t worker) {
  const std::span<float> gradient = value.gradient();
  for (std::size_t i = 0; i < value.weights.size(); ++i) {
    const float target = noise(i * 2 + worker) * 4;
    gradient[i] = value.weights[i] - target + noise(step * 1000 + i * 2 + worker) / 4;
  }
}

kvclient::StoreClientOptions client_options(const Config& config, const std::string& name) {
  kvclient::StoreClientOptions options;
  options.cluster = config.cluster;
  options.self = {name, wall_clock_us()};
  for (const NodeEntry& server : config.kvstore.servers) {
    options.servers.push_back({server.name, {server.host}, server.port});
  }
  options.engine.merged = config.kvstore.type == KvstoreType::dist_sync;
  options.engine.replicas = config.kvstore.replicas > 0;
  options.engine.beat = std::chrono::milliseconds(50);
  options.same_host = config.transport.same_host;
  Config own = config;
  own.self = name;
  options.security = make_security(own);
  return options;
}

class Trainer {
 public:
  Trainer(const Config& config, const std::string& name, const std::string& optimizer)
      : client_(client_options(config, name)), worker_(name == "w1" ? 0 : 1) {
    auto options = kvstore::default_options(kvstore::optimizer_kind(optimizer));
    options.learning_rate = 0.02;
    const auto form = kvstore::encode(options);
    optimizer_.assign(form.begin(), form.end());
    for (const Parameter& value : values_) client_.share(value.memory);
  }

  std::uint64_t join() {
    client_.join();
    const auto step = client_.wait_joined(SteadyClock::now() + patience);
    if (!step) fail("was not taken in");
    for (const Parameter& value : values_) {
      const kvstore::ValueSpec spec{DType::float32, {value.weights.size()}};
      tickets_.push_back(client_.init(value.key, spec, std::as_bytes(std::span(value.weights))));
    }
    wait_for_all();
    pull(*step);
    return *step;
  }
  // After LeftOut.
  std::uint64_t join_again() {
    for (const kvclient::Ticket ticket : tickets_)
      client_.wait(ticket, SteadyClock::now() + patience);
    tickets_.clear();
    client_.join();
    const auto step = client_.wait_joined(SteadyClock::now() + patience);
    if (!step) fail("was not taken in again");
    pull(*step);
    return *step;
  }
  bool uses_memory() const { return client_.uses_memory(); }

  void run(std::uint64_t step, std::chrono::milliseconds pause) {
    client_.at(step, false);
    std::this_thread::sleep_for(pause);
    for (Parameter& value : values_) compute_gradient(value, step, worker_);
    for (const Parameter& value : values_) {
      kvclient::PushTerms terms;
      terms.step = step;
      terms.merge = kvstore::Merge::mean;
      terms.optimizer = optimizer_;
      tickets_.push_back(client_.push(value.key, value.memory.bytes(), std::move(terms)));
    }
    client_.at(step + 1, true);
    pull(step + 1);
    wait_for_all();  // a push is over once its round is closed
  }

  const std::vector<Parameter>& values() const { return values_; }

 private:
  [[noreturn]] static void fail(const std::string& what) {
    std::cerr << what << std::endl;
    std::exit(3);
  }

  kvclient::Outcome outcome(kvclient::Ticket ticket) {
    auto outcome = client_.wait(ticket, SteadyClock::now() + patience);
    if (!outcome) fail("no answer in time");
    if (outcome->left_out) throw LeftOut();
    if (kvstore::is_error(outcome->kind)) fail(outcome->problem);
    return *std::move(outcome);
  }

  void wait_for_all() {
    for (const kvclient::Ticket ticket : tickets_) outcome(ticket);
    tickets_.clear();
  }

  void pull(std::uint64_t clock) {
    std::vector<kvclient::Ticket> pulls;
    for (const Parameter& value : values_) pulls.push_back(client_.pull(value.key, clock));
    for (std::size_t i = 0; i < pulls.size(); ++i) {
      const kvclient::Outcome pulled = outcome(pulls[i]);
      auto* to = reinterpret_cast<std::byte*>(values_[i].weights.data());
      for (const kvstore::SharedBytes& slice : pulled.values) {
        std::memcpy(to, slice->data(), slice->size());
        to += slice->size();
      }
    }
  }

  kvclient::StoreClient client_;
  const std::uint64_t worker_;
  kvstore::Bytes optimizer_;
  std::vector<Parameter> values_ = values_of_model();
  std::vector<kvclient::Ticket> tickets_;
};

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 7) return 2;
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const Config config = load_cluster(arguments[0]);
  const std::uint64_t steps = std::stoull(arguments[2]);
  const std::chrono::milliseconds pause(std::stoll(arguments[4]));
  std::ofstream lines = test::append_lines(arguments[5]);
  Trainer trainer(config, arguments[1], arguments[3]);
  std::uint64_t step = trainer.join();
  lines << "joined " << step << std::endl;
  bool out = false;
  while (step < steps) {
    try {
      if (out) {
        step = trainer.join_again();
        out = false;
        lines << "joined " << step << std::endl;
        continue;
      }
      trainer.run(step, pause);
    } catch (const LeftOut&) {
      out = true;
      continue;
    }
    if (trainer.uses_memory()) lines << "memory 1\n";
    lines << "step " << step++ << std::endl;
  }
  std::ofstream weights(arguments[5] + ".weights", std::ios::binary);
  for (const Parameter& value : trainer.values()) {
    weights.write(reinterpret_cast<const char*>(value.weights.data()),
                  static_cast<std::streamsize>(value.weights.size() * sizeof(float)));
  }
  return weights.flush() ? 0 : 1;
} catch (const std::runtime_error& error) {
  std::cerr << error.what() << std::endl;
  return 4;
}
