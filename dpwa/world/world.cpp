#include "dpwa/world/world.h"

#include <algorithm>
#include <chrono>

namespace dpwa::world {
namespace {

constexpr auto largest_clock_offset = std::chrono::hours(100);
constexpr auto moment = std::chrono::nanoseconds(1);

}  // namespace

template <class Action>
void World::in_process(std::size_t process, Action&& action) {
  Process& in = *processes_[process];
  if (!in.alive) return;
  if (in.frozen) {
    in.backlog.emplace_back(std::forward<Action>(action));
  } else {
    action();
  }
}

TimePoint Environment::now() const {
  return world_.now_ + world_.machines_[world_.processes_[process_]->machine].clock;
}

Random& Environment::random() {
  return world_.random_;
}

const std::string& Environment::name() const {
  return world_.machines_[world_.processes_[process_]->machine].name;
}

void Environment::after(Duration time, std::function<void()> action) {
  world_.schedule(world_.now_ + time,
                  [this, action = std::move(action)] { world_.in_process(process_, action); });
}

void Environment::send(const std::string& to, std::function<void(Program&)> message,
                       std::function<void()> refused) {
  world_.send(process_, to, std::move(message), std::move(refused));
}

void Environment::write(const std::string& file, std::any content, std::function<void()> done) {
  world_.write(process_, file, std::move(content), std::move(done));
}

std::any Environment::read(const std::string& file) const {
  const auto& files = world_.processes_[process_]->disk->files;
  const auto found = files.find(file);
  return found == files.end() ? std::any() : found->second;
}

void Environment::crash(Duration until_start) {
  world_.replace(process_, until_start, /*wipes=*/false);
}

void Environment::burn(Duration until_start) {
  world_.replace(process_, until_start, /*wipes=*/true);
}

void Environment::stop(Duration until_wake) {
  const std::size_t machine = world_.processes_[process_]->machine;
  world_.freeze(machine);
  world_.schedule(world_.now_ + until_wake, [machine, &world = world_] { world.wake(machine); });
}

void Environment::hide(Duration until_back) {
  world_.machines_[world_.processes_[process_]->machine].hidden = world_.now_ + until_back;
}

World::World(std::uint64_t seed, WorldOptions options) : options_(options), random_(seed) {
  processes_.push_back(std::make_unique<Process>());
}

World::~World() = default;

Duration World::up_to(Duration most) {
  return Duration(static_cast<std::int64_t>(
      random_.below(static_cast<std::uint64_t>(std::max<std::int64_t>(most.count(), 1)))));
}

void World::schedule(TimePoint at, std::function<void()> action) {
  if (free_actions_.empty()) {
    free_actions_.push_back(actions_.size());
    actions_.emplace_back();
  }
  const std::size_t place = free_actions_.back();
  free_actions_.pop_back();
  actions_[place] = std::move(action);
  events_.push({at, order_++, place});
}

std::size_t World::add_machine(const std::string& name, Start start) {
  Machine machine{.name = name,
                  .start = std::move(start),
                  .disk = std::make_shared<Disk>(),
                  .clock = up_to(largest_clock_offset),
                  .cut = {},
                  .hidden = {},
                  .slow = {}};
  machines_.push_back(std::move(machine));
  by_name_.emplace(name, machines_.size() - 1);
  return machines_.size() - 1;
}

bool World::runs(std::size_t machine) const {
  return processes_[machines_[machine].process]->alive;
}

bool World::frozen(std::size_t machine) const {
  return processes_[machines_[machine].process]->frozen;
}

Program* World::program(std::size_t machine) const {
  return processes_[machines_[machine].process]->program.get();
}

const std::any* World::file(std::size_t machine, const std::string& name) const {
  const auto& files = machines_[machine].disk->files;
  const auto found = files.find(name);
  return found == files.end() ? nullptr : &found->second;
}

void World::start(std::size_t machine) {
  if (runs(machine)) return;
  processes_.push_back(std::make_unique<Process>());
  const std::size_t process = processes_.size() - 1;
  Machine& on = machines_[machine];
  on.process = process;
  Process& fresh = *processes_[process];
  fresh.machine = machine;
  fresh.disk = on.disk;
  fresh.alive = true;
  fresh.environment = std::make_unique<Environment>(*this, process);
  fresh.program = on.start(*fresh.environment);
}

// The last writes reach the disk, or do not.
void World::end(std::size_t process) {
  Process& ended = *processes_[process];
  ended.alive = false;
  ended.frozen = false;
  for (auto& [order, write] : ended.writes) {
    if (random_.bernoulli(.5)) break;
    ended.disk->files[write.file] = std::move(write.content);
  }
  ended.writes.clear();
  ended.backlog.clear();
  ended.program.reset();
}

void World::kill(std::size_t machine) {
  if (runs(machine)) end(machines_[machine].process);
}

void World::replace(std::size_t process, Duration until_start, bool wipes) {
  schedule(now_, [this, process, until_start, wipes] {
    if (!processes_[process]->alive) return;
    const std::size_t machine = processes_[process]->machine;
    kill(machine);
    if (wipes) wipe(machine);
    schedule(now_ + until_start, [this, machine] { start(machine); });
  });
}

void World::freeze(std::size_t machine) {
  if (runs(machine)) processes_[machines_[machine].process]->frozen = true;
}

void World::wake(std::size_t machine) {
  const std::size_t process = machines_[machine].process;
  Process& woken = *processes_[process];
  if (!woken.frozen) return;
  woken.frozen = false;
  for (auto& action : std::exchange(woken.backlog, {}))
    schedule(now_, [this, process, action = std::move(action)] { in_process(process, action); });
}

void World::wipe(std::size_t machine) {
  if (!runs(machine)) machines_[machine].disk->files.clear();
}

void World::cut(std::size_t from, std::size_t to, bool is_cut) {
  machines_[from].cut[to] = is_cut;
}

void World::slow_down(std::size_t from, std::size_t to, Duration most) {
  machines_[from].slow[to] = most;
}

void World::split(const std::function<bool(std::size_t)>& on_side) {
  for (std::size_t from = 0; from < machines(); ++from) {
    for (std::size_t to = 0; to < machines(); ++to) cut(from, to, on_side(from) != on_side(to));
  }
}

void World::heal() {
  for (Machine& machine : machines_) {
    machine.cut.clear();
    machine.slow.clear();
  }
}

bool World::is_cut(const Machine& from, std::size_t to) const {
  const auto cut = from.cut.find(to);
  return (cut != from.cut.end() && cut->second) || now_ < from.hidden ||
         now_ < machines_[to].hidden;
}

void World::send(std::size_t from, const std::string& to, std::function<void(Program&)> message,
                 std::function<void()> refused) {
  const auto found = by_name_.find(to);
  if (found == by_name_.end()) return;
  const std::size_t receiver = found->second;
  Process& sender = *processes_[from];
  if (is_cut(machines_[sender.machine], receiver)) {
    if (!random_.bernoulli(options_.through_cut)) return;
    // Sent again until the cut is over, on a connection that lives so long.
    return schedule(
        now_ + up_to(std::chrono::seconds(1)),
        [this, from, to, message = std::move(message), refused = std::move(refused)]() mutable {
          if (processes_[from]->alive) send(from, to, std::move(message), std::move(refused));
        });
  }
  const auto& slow = machines_[sender.machine].slow;
  const auto extra = slow.find(receiver);
  const Duration jitter = options_.jitter + (extra == slow.end() ? Duration{} : extra->second);
  TimePoint& last = sender.last[receiver];
  last = std::max(last + moment, now_ + options_.delay + up_to(jitter));
  schedule(last, [this, from, receiver, message = std::move(message),
                  refused = std::move(refused)]() mutable {
    // What a process sent just before its end may be lost with the connection.
    if (!processes_[from]->alive && random_.bernoulli(.5)) return;
    const std::size_t process = machines_[receiver].process;
    if (refused && !processes_[process]->alive &&
        !is_cut(machines_[receiver], processes_[from]->machine))
      return schedule(now_ + options_.delay, [this, from, refused] { in_process(from, refused); });
    in_process(process, [this, process, message = std::move(message)] {
      message(*processes_[process]->program);
    });
  });
}

void World::write(std::size_t process, std::string file, std::any content,
                  std::function<void()> done) {
  const std::uint64_t order = order_++;
  processes_[process]->writes.emplace(order, Process::Write{std::move(file), std::move(content)});
  schedule(now_ + up_to(options_.disk), [this, process, order, done = std::move(done)] {
    Process& by = *processes_[process];
    const auto written = by.writes.find(order);
    if (written == by.writes.end()) return;  // it has died
    by.disk->files[written->second.file] = std::move(written->second.content);
    by.writes.erase(written);
    in_process(process, done);
  });
}

void World::run(Duration time) {
  const TimePoint until = now_ + time;
  while (!events_.empty() && events_.top().at <= until) {
    now_ = events_.top().at;
    const std::size_t place = events_.top().action;
    const auto action = std::exchange(actions_[place], {});
    free_actions_.push_back(place);
    events_.pop();
    ++done_;
    action();
  }
  now_ = until;
}

}  // namespace dpwa::world
