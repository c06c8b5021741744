#include "test/world/group_process.h"

#include <any>

namespace dpwa::world::testing {

using members::Kept;
using members::ProcessId;
using members::View;

namespace {

constexpr auto votes_file = "votes";
constexpr auto counter_file = "counter";

}  // namespace

GroupProcess::GroupProcess(Environment& environment, Traps& traps,
                           members::GroupEngineOptions options)
    : traps_(traps[environment.name()]), environment_(environment), beat_(options.beat) {
  const std::any counter = environment_.read(counter_file);
  const std::uint64_t number = counter.has_value() ? std::any_cast<std::uint64_t>(counter) + 1 : 1;
  options.view.self = {environment_.name(), number, environment_.random().next()};
  std::optional<Kept> former;
  const std::any kept = environment_.read(votes_file);
  if (kept.has_value()) former = std::any_cast<Kept>(kept);
  options.view.seed = environment_.random().next();
  engine_.emplace(std::move(options), std::move(former));
  engine_->set_seeking(true, environment_.now());
  view_ = engine().view();
  environment_.write(counter_file, number, [this] { tick(); });
}

void GroupProcess::tick() {
  if (halted_) return;
  engine_->tick(environment_.now());
  ticked();
  pump();
  if (!halted_) environment_.after(beat_, [this] { tick(); });
}

void GroupProcess::end(Duration until_start) {
  halted_ = true;
  environment_.crash(until_start);
}

void GroupProcess::tell_message(const std::string& to, const members::GroupMessage& message) {
  tell<GroupProcess>(to, [from = id(), message](GroupProcess& receiver) {
    receiver.engine_->receive(from, message, receiver.environment_.now());
    receiver.heard(from, message);
  });
}

void GroupProcess::pump() {
  if (halted_) return;
  pump_views();
  if (!halted_) pumped();
}

// One write at a time; what follows from it waits.
void GroupProcess::pump_views() {
  members::GroupEngine::Wishes fresh = engine_->take();
  if (fresh.keep || !fresh.installed.empty() || !fresh.send.empty())
    waiting_.push_back(std::move(fresh));
  while (!waits_ && !waiting_.empty()) {
    if (!waiting_.front().keep) {
      if (!act()) return;
      continue;
    }
    waits_ = true;
    environment_.write(votes_file, std::move(*waiting_.front().keep), [this] {
      waits_ = false;
      waiting_.front().keep.reset();
      for (const View& view : waiting_.front().installed) decided(view);
      pump();
    });
  }
}

bool GroupProcess::act() {
  auto& [keep, send, views] = waiting_.front();
  while (!send.empty()) {
    const auto [to, message] = send.front();
    if (interrupts(falls(message.index(), /*sent=*/false))) return false;
    send.erase(send.begin());
    tell_message(to, message);
    if (interrupts(falls(message.index(), /*sent=*/true))) return false;
  }
  const std::vector<View> fresh = std::move(views);
  waiting_.pop_front();
  for (const View& view : fresh) installed(view);
  return true;
}

std::optional<Trap> spring(std::vector<Trap>& traps, std::size_t kind, bool sent) {
  for (auto trap = traps.begin(); trap != traps.end(); ++trap) {
    if (trap->kind != kind || trap->sends != sent || trap->after-- > 0) continue;
    const Trap sprung = *trap;
    traps.erase(trap);
    return sprung;
  }
  return std::nullopt;
}

std::optional<Trap::Does> GroupProcess::falls(std::size_t kind, bool sent) {
  const auto sprung = spring(traps_, kind, sent);
  if (!sprung) return std::nullopt;
  switch (sprung->does) {
    case Trap::Does::ends:
      end(sprung->back);
      break;
    case Trap::Does::burns:
      halted_ = true;
      environment_.burn(sprung->back);
      break;
    case Trap::Does::stops:
      environment_.stop(sprung->back);
      break;
    case Trap::Does::hides:
      environment_.hide(sprung->back);
      break;
  }
  return sprung->does;
}

// Whether what it is about to do has to wait: for ever, or until it wakes.
bool GroupProcess::interrupts(std::optional<Trap::Does> sprung) {
  if (sprung == Trap::Does::stops) {
    waits_ = true;
    environment_.after({}, [this] {
      waits_ = false;
      pump();
    });
  }
  return halted_ || waits_;
}

}  // namespace dpwa::world::testing
