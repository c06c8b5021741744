#include "test/dpwa/kvstore/virtual_store.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "dpwa/base/incarnation.h"
#include "dpwa/base/on_exit.h"

namespace dpwa::kvstore::testing {
namespace {

constexpr auto ms = [](double value) { return Duration(static_cast<std::int64_t>(value * 1e6)); };

ValueSpec spec_of_keys() {
  return {DType::float64, {VirtualStore::max_lives, VirtualStore::row_words}};
}

}  // namespace

// One process. Its engine ends with it.
class VirtualStore::Life : public world::Program {
 public:
  explicit Life(std::function<void()> end) : end_(std::move(end)) {}
  ~Life() override { end_(); }

 private:
  const std::function<void()> end_;
};

VirtualStore::VirtualStore(StoreOptions options,
                           std::map<std::uint64_t, ShardEngine::Captured> from)
    : options_(std::move(options)),
      from_(std::move(from)),
      random_(derive_seed(options_.seed, {17})),
      servers_(options_.servers),
      workers_(options_.workers),
      world_(derive_seed(options_.seed, {18}),
             {.delay = ms(0.2 + options_.latency_ms), .jitter = ms(1.8), .through_cut = 0}) {
  for (std::size_t at = 0; at < options_.servers; ++at) {
    server_names_.push_back("s" + std::to_string(at));
    world_.add_machine(server_names_.back(), [this, at](world::Environment& environment) {
      begin_server(at, environment);
      return std::make_unique<Life>([this, at] {
        servers_[at].plan.reset();
        servers_[at].engine.reset();
      });
    });
  }
  for (std::size_t at = 0; at < options_.workers; ++at) {
    world_.add_machine("w" + std::to_string(at), [this, at](world::Environment& environment) {
      begin_worker(at, environment);
      return std::make_unique<Life>([this, at] { workers_[at].engine.reset(); });
    });
  }
  for (std::size_t machine = 0; machine < world_.machines(); ++machine) world_.start(machine);
}

double VirtualStore::now_ms() const {
  return std::chrono::duration<double, std::milli>(world_.now().time_since_epoch()).count();
}

void VirtualStore::quiesce(Duration time) {
  quiet_ = true;
  run(time);
}

VirtualStore::Process& VirtualStore::process(const std::string& name) {
  if (is_server(name)) return servers_[index_of(name)];
  return workers_[index_of(name)];
}

bool VirtualStore::runs(const std::string& name) const {
  return is_server(name) ? servers_[index_of(name)].engine != nullptr
                         : workers_[index_of(name)].engine != nullptr;
}

void VirtualStore::start_server(std::size_t server, std::uint64_t incarnation) {
  servers_[server].next = incarnation;
  world_.start(server);
}

void VirtualStore::start_worker(std::size_t worker, std::uint64_t incarnation) {
  workers_[worker].next = incarnation;
  world_.start(options_.servers + worker);
}

std::uint64_t VirtualStore::next_incarnation(const Process& former) const {
  if (former.next != 0) return former.next;
  const auto now = static_cast<std::uint64_t>(now_ms() * 1e3);
  return std::max(former.incarnation + 1, options_.numbers_by_time ? now : 0);
}

void VirtualStore::fail(std::string problem) {
  if (std::ranges::count(failures_, problem) == 0) failures_.push_back(std::move(problem));
}

void VirtualStore::begin_server(std::size_t at, world::Environment& environment) {
  Server& server = servers_[at];
  const std::string& name = server_names_[at];
  server.incarnation = next_incarnation(server);
  server.next = 0;
  server.environment = &environment;
  server.ends = false;
  ServerEngineOptions options;
  options.shard = rules_of(options_.type, options_.staleness, options_.replicas);
  options.shard.resend = ms(100);
  options.shard.syncs_at_once = 2;
  options.watch.min_workers = options_.workers;
  options.watch.silent_after = ms(1000);
  options.watch.hung_min = ms(500);
  options.beat = ms(100);
  options.retry = ms(150 + 50 * static_cast<double>(at));
  options.snapshots = options_.keeps_snapshots || !from_.empty();
  server.engine = std::make_unique<ServerEngine>(options, MemberId{name, server.incarnation},
                                                 server_names_, environment.now());
  if (options.snapshots) list_snapshots(at);
  tick(name);
}

void VirtualStore::begin_worker(std::size_t at, world::Environment& environment) {
  Worker& worker = workers_[at];
  const std::string name = "w" + std::to_string(at);
  const double slowness = worker.slowness;
  const std::uint64_t incarnation = next_incarnation(worker);
  const std::size_t left_out = worker.left_out;
  worker = {};
  worker.incarnation = incarnation;
  worker.environment = &environment;
  worker.slowness = slowness;
  worker.left_out = left_out;
  if (lives_ == max_lives) throw std::logic_error("VirtualStore: too many lives of workers");
  worker.row = lives_++;
  rows_[{name, incarnation}] = worker.row;
  WorkerOptions options;
  options.merged = rules_of(options_.type, options_.staleness).merged;
  options.replicas = options_.replicas;
  options.beat = ms(100);
  options.resend = ms(300);
  options.window = 2;
  options.short_in_one = 1;
  worker.engine =
      std::make_unique<WorkerEngine>(options, MemberId{name, incarnation}, server_names_);
  worker.engine->join();
  for (std::uint64_t key = 0; key < options_.keys + options_.unused_keys; ++key) {
    worker.engine->init(Key(static_cast<std::int64_t>(key)), spec_of_keys(),
                        bytes_of(std::vector<double>(elements)));
  }
  tick(name);
}

void VirtualStore::hang(std::size_t at, bool hangs) {
  Worker& worker = workers_[at];
  worker.hangs = hangs;
  if (hangs || !worker.engine) return;
  if (!worker.joined) worker.engine->join();
  if (worker.computing) push_step(at);
}

void VirtualStore::slow_down(std::size_t worker, double factor) {
  workers_[worker].slowness = factor;
}

void VirtualStore::split(const std::set<std::string>& side) {
  world_.split([&](std::size_t machine) { return side.contains(world_.name(machine)); });
}

void VirtualStore::tick(const std::string& name) {
  if (is_server(name)) {
    servers_[index_of(name)].engine->tick(now(name));
    if (servers_[index_of(name)].plan) keep_snapshots(index_of(name));
  } else {
    workers_[index_of(name)].engine->tick(now(name));
  }
  pump(name);
  process(name).environment->after(ms(random_.uniform(15, 25)), [=, this] { tick(name); });
}

void VirtualStore::pump(const std::string& name) {
  const std::size_t at = index_of(name);
  if (is_server(name)) {
    ServerEngine& engine = *servers_[at].engine;
    const MemberId self = engine.self();
    check_epoch(engine.epoch());
    for (Outgoing& message : engine.take()) transmit(self, std::move(message));
    if (!servers_[at].plan) {
      for (ShardEngine::Captured& each : engine.take_captured()) {
        const auto key = static_cast<std::uint64_t>(each.slice.key.number());
        snapshots_[each.snapshot][key] = std::move(each);
      }
    }
    if (engine.deposed()) {
      const auto known = engine.outdated_by();
      const auto next = known ? incarnation_after(*known, self.incarnation) : std::nullopt;
      servers_[at].next = next.value_or(0);
      servers_[at].environment->crash(ms(100));
    }
    return;
  }
  handle_events(at);
  check_epoch(workers_[at].engine->epoch());
  const MemberId self = workers_[at].engine->self();
  for (Outgoing& message : workers_[at].engine->take(now(name))) transmit(self, std::move(message));
}

void VirtualStore::transmit(const MemberId& from, Outgoing message) {
  Process& sender = process(from.name);
  const auto ends = [&](bool sent) {
    sender.ends =
        sender.ends || (watch_ && watch_(*sender.environment, from.name, message.message, sent));
    return sender.ends;
  };
  if (ends(/*sent=*/false)) return;
  const OnExit after([&] { ends(/*sent=*/true); });
  if (!runs(message.to)) return;
  if (!quiet_ && random_.bernoulli(options_.loss)) return;
  if (auto* push = std::get_if<Push>(&message.message); push && index_of(from.name) % 2 == 0) {
    // Not of one host: the bytes travel.
    push->values.assign(push->lent.bytes.begin(), push->lent.bytes.end());
    push->lent = {};
  }
  const std::uint64_t to_incarnation = process(message.to).incarnation;
  const int times = !quiet_ && random_.bernoulli(options_.doubled) ? 2 : 1;
  for (int i = 0; i < times; ++i) {
    world::Environment& environment = *process(from.name).environment;
    const auto send = [=, this, &environment] {
      environment.send(message.to,
                       [=, this](world::Program&) { deliver(from, message, to_incarnation); });
    };
    if (!quiet_ && random_.bernoulli(options_.overtaking)) {
      environment.after(ms(random_.uniform(0, 100)), send);
    } else {
      send();
    }
  }
}

std::uint64_t VirtualStore::life_of(const std::string& worker, std::uint64_t incarnation) const {
  return rows_.at({worker, incarnation}) + 1;
}

// A connection leads to one life of a process.
void VirtualStore::deliver(const MemberId& from, const Outgoing& message,
                           std::uint64_t to_incarnation) {
  if (process(message.to).incarnation != to_incarnation) return;
  const TimePoint now = this->now(message.to);
  const std::size_t at = index_of(message.to);
  constexpr unsigned tag_bits = 40;  // the life of the worker above them
  if (is_server(message.to)) {
    const std::uint64_t life = is_server(from.name) ? 0 : life_of(from.name, from.incarnation);
    const std::uint64_t tag = message.tag | life << tag_bits;
    servers_[at].engine->receive(from, tag, message.message, now);
  } else if (std::holds_alternative<Answer>(message.message)) {
    const std::uint64_t life = message.tag >> tag_bits;
    if (message.tag != 0 && life != life_of(message.to, to_incarnation)) return;
    const std::uint64_t tag = message.tag & ((std::uint64_t{1} << tag_bits) - 1);
    workers_[at].engine->receive(from, tag, message.message, now);
  } else {
    workers_[at].engine->receive(from, 0, message.message, now);
  }
  pump(message.to);
}

void VirtualStore::handle_events(std::size_t at) {
  Worker& worker = workers_[at];
  for (const WorkerEngine::Event& event : worker.engine->take_events()) {
    if (const auto* joined = std::get_if<WorkerEngine::Joined>(&event)) {
      worker.joined = true;
      worker.told = false;
      worker.computing = false;
      worker.clock = joined->first_step;
      if (worker.created == options_.keys + options_.unused_keys) ask_for_values(at);
    } else if (std::holds_alternative<WorkerEngine::AtEnd>(event)) {
      worker.joined = true;
      ask_for_values(at);
    } else if (std::holds_alternative<WorkerEngine::LeftOut>(event)) {
      worker.joined = false;
      worker.computing = false;
      ++worker.left_out;
      if (worker.finished)
        worker.environment->after({}, [=, this] { kill_worker(at); });  // the process ends
      if (!worker.hangs && !worker.finishing) worker.engine->join();
    } else if (std::holds_alternative<WorkerEngine::Created>(event)) {
      const bool all = ++worker.created == options_.keys + options_.unused_keys;
      if (all && worker.joined) ask_for_values(at);
    } else if (const auto* pushed = std::get_if<WorkerEngine::Pushed>(&event)) {
      const auto key = static_cast<std::uint64_t>(pushed->slice.key.number());
      Outcome& outcome = outcomes_[{worker.row, key, pushed->step}];
      (pushed->kind == AnswerKind::counted ? outcome.counted : outcome.refused) = true;
    } else if (const auto* pulled = std::get_if<WorkerEngine::Pulled>(&event)) {
      if (pulled->clock != worker.pull_clock() || !worker.joined) continue;
      check_pull(at, *pulled);
      worker.missing.erase(static_cast<std::uint64_t>(pulled->slice.key.number()));
      if (worker.missing.empty()) begin_step(at);
    } else if (const auto* number = std::get_if<WorkerEngine::Renumbered>(&event)) {
      worker.incarnation = number->incarnation;
      rows_[{"w" + std::to_string(at), worker.incarnation}] = worker.row;
    } else if (std::holds_alternative<WorkerEngine::RunOver>(event)) {
      worker.told = true;
      if (serves_all(worker.engine->epoch().run))
        failures_.push_back("worker " + std::to_string(at) + " is told a lie");
      worker.environment->after({}, [=, this] { kill_worker(at); });  // the process ends
    } else if (std::holds_alternative<WorkerEngine::Refused>(event)) {
      worker.told = true;
    } else if (const auto* failed = std::get_if<WorkerEngine::Failed>(&event)) {
      failures_.push_back("worker " + std::to_string(at) + ": " + failed->problem);
    }
  }
}

void VirtualStore::ask_for_values(std::size_t at) {
  Worker& worker = workers_[at];
  worker.engine->at(worker.clock, true, worker.environment->now());
  worker.missing.clear();
  for (std::uint64_t key = 0; key < options_.keys; ++key) {
    worker.missing.insert(key);
    worker.engine->pull({0, {static_cast<std::int64_t>(key), 0}, worker.pull_clock(), 0},
                        static_cast<int>(options_.keys - key));
  }
}

void VirtualStore::begin_step(std::size_t at) {
  Worker& worker = workers_[at];
  if (worker.finishing) {
    worker.finished = true;
    return worker.engine->leave();
  }
  worker.finishing = options_.finishes && worker.clock >= options_.steps;
  if (worker.finishing) return worker.engine->finish();
  if (quiet_ || worker.clock >= options_.steps) return;
  worker.begun.push_back(now_ms());
  for (const Worker& other : workers_) {
    if (!other.engine || !other.joined || other.clock >= worker.clock) continue;
    largest_lead_ = std::max(largest_lead_, worker.clock - other.clock);
  }
  worker.computing = true;
  worker.engine->at(worker.clock, false, worker.environment->now());
  worker.environment->after(ms(random_.uniform(8, 12) * worker.slowness),
                            [=, this, clock = worker.clock] {
                              const Worker& later = workers_[at];
                              if (later.clock != clock || !later.computing || later.hangs) return;
                              push_step(at);
                              pump("w" + std::to_string(at));
                            });
}

void VirtualStore::push_step(std::size_t at) {
  Worker& worker = workers_[at];
  if (!worker.computing || !worker.joined) return;
  worker.computing = false;
  if (worker.clock >= bits * (row_words - 1))
    throw std::logic_error("VirtualStore: too many steps for a row");
  std::vector<double> gradient(elements);
  const std::size_t row = worker.row * row_words;
  gradient[row] = -1;
  gradient[row + 1 + worker.clock / bits] = -std::exp2(worker.clock % bits);
  for (std::uint64_t key = options_.keys; key-- > 0;) {
    const bool finite = !random_.bernoulli(quiet_ ? 0 : options_.not_finite);
    auto bytes = std::make_shared<Bytes>(bytes_of(gradient));
    if (!finite) {
      const double nan = std::numeric_limits<double>::quiet_NaN();
      std::memcpy(bytes->data(), &nan, sizeof nan);
    }
    gradients_.push_back(bytes);
    outcomes_[{worker.row, key, worker.clock}].finite = finite;
    Push push;
    push.slice = {static_cast<std::int64_t>(key), 0};
    push.step = worker.clock;
    OptimizerOptions optimizer = default_options(options_.optimizer);
    optimizer.learning_rate = 1;
    const OptionsBytes form = encode(optimizer);
    push.optimizer.assign(form.begin(), form.end());
    push.lent = {*bytes};
    push.wants_value = options_.type == KvstoreType::dist_async;
    worker.engine->push(std::move(push));
  }
  ++worker.clock;
  ask_for_values(at);
}

}  // namespace dpwa::kvstore::testing
