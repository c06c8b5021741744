#include "test/dpwa/kvserver/store_worker.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <cstring>
#include <future>

#include "dpwa/kvstore/optimizer.h"
#include "dpwa/kvstore/slices.h"
#include "dpwa/net/coroutine.h"
#include "dpwa/net/free_ports.h"
#include "dpwa/net/io_thread.h"
#include "dpwa/security/security.h"
#include "dpwa/wire/kv_routes.h"
#include "test/support/eventually.h"

namespace dpwa::test {

namespace asio = boost::asio;
using kvstore::WorkerEngine;
using SteadyClock = std::chrono::steady_clock;

namespace {

constexpr auto store_tick = std::chrono::milliseconds(5);

std::vector<std::string> names_in(const std::vector<NodeEntry>& entries) {
  std::vector<std::string> names;
  for (const NodeEntry& entry : entries) names.push_back(entry.name);
  return names;
}

kvstore::WorkerOptions worker_options(const Config& config) {
  kvstore::WorkerOptions options;
  options.merged = config.kvstore.type == KvstoreType::dist_sync;
  options.replicas = config.kvstore.replicas > 0;
  options.beat = std::chrono::milliseconds(20);
  options.resend = std::chrono::milliseconds(200);
  return options;
}

}  // namespace

Config store_config(std::size_t servers, KvstoreType type) {
  Config config;
  config.cluster = "test";
  for (const char* name : {"w1", "w2"}) {
    NodeEntry node;
    node.name = name;
    config.nodes.push_back(node);
  }
  config.backend = Backend::kvstore;
  config.kvstore.type = type;
  config.kvstore.min_workers = 1;
  config.kvstore.lost_after = std::chrono::seconds(2);
  const auto ports = net::free_ports(servers);
  for (std::size_t i = 0; i < servers; ++i) {
    NodeEntry server;
    server.name = "s" + std::to_string(i + 1);
    server.port = ports[i];
    config.kvstore.servers.push_back(server);
  }
  return config;
}

// To one server. What is sent before it is connected is dropped.
class StoreWorker::Link final : public net::StoreLink {
 public:
  Link(StoreWorker& worker, PeerAddress server)
      : StoreLink(worker.io_, worker.local_,
                  {std::move(server), wire::kv_types(wire::KvRoute::server_to_worker),
                   std::chrono::seconds(30), true}),
        worker_(worker) {}

  void send(kvstore::Message message, std::uint64_t tag) {
    if (!is_connected()) return;
    outgoing_.add(std::move(message), tag);
    wake();
  }

 private:
  void connected(const wire::Welcome& welcome) override {
    process_ = {name(), welcome.incarnation};
  }
  std::optional<net::Failure> received(net::Frame frame) override {
    auto message = wire::decode_kv(frame.header.type, frame.body, std::move(frame.payload));
    if (!message) return message.error();
    worker_.engine_.receive(process_, frame.header.request_id, std::move(*message),
                            SteadyClock::now());
    worker_.deliver();
    return std::nullopt;
  }
  void failed(const net::Failure& failure, LogLevel level, bool was_connected) override {
    if (was_connected && !failure.is_protocol()) return;
    log(level, "kvserver", "cannot reach server '" + name() + "': " + failure.detail);
  }
  void disconnected() override { outgoing_.clear(); }

  StoreWorker& worker_;
  kvstore::MemberId process_;
};

StoreWorker::StoreWorker(const Config& config, const std::string& name)
    : servers_(config.kvstore.servers),
      local_(config.cluster, name, wall_clock_us(), names_in(servers_)),
      engine_(worker_options(config), {name, local_.incarnation}, names_in(servers_)),
      timer_(io_) {
  Config own = config;
  own.self = name;
  local_.security = make_security(own);
  for (const NodeEntry& server : servers_) {
    links_[server.name] = std::make_shared<Link>(*this, peer_address(server));
  }
  engine_.join();
  for (const auto& [server, link] : links_) link->start();
  asio::co_spawn(io_, tick(), net::rethrow);
  thread_ = start_background_thread([this] { net::run_io(io_); });
}

StoreWorker::~StoreWorker() {
  asio::post(io_, [this] {
    stopped_ = true;
    timer_.cancel();
    for (const auto& [server, link] : links_) link->stop();
  });
  thread_.join();
}

asio::awaitable<void> StoreWorker::tick() {
  while (!stopped_) {
    engine_.tick(SteadyClock::now());
    deliver();
    timer_.expires_after(store_tick);
    co_await timer_.async_wait(net::as_result);
  }
}

void StoreWorker::deliver() {
  for (kvstore::Outgoing& each : engine_.take(SteadyClock::now())) {
    links_.at(each.to)->send(std::move(each.message), each.tag);
  }
  const MutexLock lock(mutex_);
  for (Event& event : engine_.take_events()) events_.push_back(std::move(event));
}

void StoreWorker::call(std::function<void(WorkerEngine&)> action) {
  std::promise<void> done;
  asio::post(io_, [&] {
    action(engine_);
    deliver();
    done.set_value();
  });
  done.get_future().wait();
}

kvstore::Epoch StoreWorker::epoch() {
  kvstore::Epoch epoch;
  call([&](WorkerEngine& engine) { epoch = engine.epoch(); });
  return epoch;
}

// The first event of this type for which the condition holds is taken out.
template <typename Wanted>
std::optional<Wanted> StoreWorker::wait_for(const std::function<bool(const Wanted&)>& condition) {
  std::optional<Wanted> found;
  eventually([&] {
    const MutexLock lock(mutex_);
    for (auto event = events_.begin(); event != events_.end(); ++event) {
      const Wanted* wanted = std::get_if<Wanted>(&*event);
      if (wanted == nullptr || !condition(*wanted)) continue;
      found = *wanted;
      events_.erase(event);
      return true;
    }
    return false;
  });
  return found;
}

bool StoreWorker::joined() {
  return eventually([&] {
    bool takes_part = false;
    call([&](WorkerEngine& engine) { takes_part = engine.takes_part(); });
    return takes_part;
  });
}

bool StoreWorker::left_out() {
  return wait_for<WorkerEngine::LeftOut>([](const auto&) { return true; }).has_value();
}

std::string StoreWorker::problem() {
  const auto failed = wait_for<WorkerEngine::Failed>([](const auto&) { return true; });
  return failed ? failed->problem : "none";
}

std::string StoreWorker::refusal() {
  const auto refused = wait_for<WorkerEngine::Refused>([](const auto&) { return true; });
  return refused ? refused->problem : "none";
}

bool StoreWorker::init(const kvstore::Key& key, const std::vector<float>& values) {
  elements_[key] = values.size();
  call([&](WorkerEngine& engine) {
    engine.init(key, {DType::float32, {values.size()}}, std::as_bytes(std::span(values)));
  });
  const auto slices =
      kvstore::cut_into_slices(key, values.size(), static_cast<std::uint32_t>(servers_.size()));
  for (std::size_t i = 0; i < slices.size(); ++i) {
    if (!wait_for<WorkerEngine::Created>([](const auto&) { return true; })) return false;
  }
  return true;
}

bool StoreWorker::push(const kvstore::Key& key, std::uint64_t step,
                       const std::vector<float>& gradient, double rate) {
  const auto slices =
      kvstore::cut_into_slices(key, gradient.size(), static_cast<std::uint32_t>(servers_.size()));
  kvstore::OptimizerOptions options;
  options.learning_rate = rate;
  const auto encoded = kvstore::encode(options);
  call([&](WorkerEngine& engine) {
    engine.at(step, true, SteadyClock::now());
    for (std::uint32_t index = 0; index < slices.size(); ++index) {
      kvstore::Push push;
      push.slice = {key, index};
      push.step = step;
      push.wants_value = true;
      if (rate != 0) push.optimizer.assign(encoded.begin(), encoded.end());
      const auto part = std::as_bytes(
          std::span(gradient).subspan(slices[index].elements.from, slices[index].elements.count));
      push.values.assign(part.begin(), part.end());
      engine.push(std::move(push));
    }
    engine.at(step + 1, true, SteadyClock::now());
  });
  for (std::size_t i = 0; i < slices.size(); ++i) {
    const auto pushed = wait_for<WorkerEngine::Pushed>(
        [&](const auto& event) { return event.slice.key == key && event.step == step; });
    if (!pushed || pushed->kind != kvstore::AnswerKind::counted) return false;
  }
  return true;
}

std::vector<float> StoreWorker::pull(const kvstore::Key& key, std::uint64_t clock) {
  const auto slices =
      kvstore::cut_into_slices(key, elements_.at(key), static_cast<std::uint32_t>(servers_.size()));
  call([&](WorkerEngine& engine) {
    for (std::uint32_t index = 0; index < slices.size(); ++index) {
      engine.pull({0, {key, index}, clock, 0});
    }
  });
  std::vector<float> values(elements_.at(key));
  for (std::uint32_t index = 0; index < slices.size(); ++index) {
    const auto pulled = wait_for<WorkerEngine::Pulled>(
        [&](const auto& event) { return event.slice == kvstore::SliceId{key, index}; });
    if (!pulled || !pulled->values) return {};
    std::memcpy(values.data() + slices[index].elements.from, pulled->values->data(),
                pulled->values->size());
  }
  return values;
}

}  // namespace dpwa::test
