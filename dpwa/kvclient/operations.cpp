#include "dpwa/kvclient/operations.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace dpwa::kvclient {

using kvstore::AnswerKind;
using kvstore::SliceId;

namespace {

constexpr std::array<const char*, 4> kind_names{"init", "push", "pull", "state"};

// A stand-in for values that have landed elsewhere; null if they do not fit there.
kvstore::SharedBytes land(std::span<std::byte> target, std::span<const std::byte> values) {
  if (values.empty()) return std::make_shared<kvstore::Bytes>();  // the values were there already
  if (values.size() != target.size()) return nullptr;
  if (!values.empty()) std::memcpy(target.data(), values.data(), values.size());
  return std::make_shared<kvstore::Bytes>();
}

int rank_of(AnswerKind kind) {
  if (kvstore::is_error(kind)) return 3;
  if (kind == AnswerKind::not_finite) return 2;
  return kind == AnswerKind::dropped ? 1 : 0;
}

}  // namespace

void Operations::begin(Ticket ticket, Kind kind, const kvstore::Key& key, std::uint64_t clock,
                       std::uint32_t slices, bool wants_value) {
  Call& call = under_way_[ticket];
  call.missing = slices;
  if (own_trace().is_on())
    call.trace.emplace(Track::store, kind_names.at(static_cast<std::size_t>(kind)), key.text());
  if (kind == Kind::pull || wants_value) call.outcome.values.resize(slices);
  if (kind == Kind::state) call.outcome.states.resize(slices);
  for (std::uint32_t index = 0; index < slices; ++index)
    parts_[{kind, {key, index}, clock}].push_back(ticket);
}

void Operations::begin(Ticket ticket, Kind kind, const kvstore::Key& key, std::uint64_t clock,
                       std::vector<std::span<std::byte>> into) {
  begin(ticket, kind, key, clock, static_cast<std::uint32_t>(into.size()), true);
  under_way_[ticket].into = std::move(into);
}

std::span<std::byte> Operations::target(Kind kind, const SliceId& slice,
                                        std::uint64_t clock) const {
  const auto part = parts_.find({kind, slice, clock});
  if (part == parts_.end()) return {};
  const auto& into = under_way_.at(part->second.front()).into;
  return slice.index < into.size() ? into[slice.index] : std::span<std::byte>();
}

void Operations::handle(Engine::Created& event) {
  finish({Kind::init, event.slice, 0}, {.kind = AnswerKind::created, .next_step = event.next_step});
}

void Operations::handle(Engine::Pushed& event, bool holds) {
  finish({Kind::push, event.slice, event.step}, {.kind = event.kind,
                                                 .version = event.version,
                                                 .values = std::move(event.values),
                                                 .holds = holds});
}

void Operations::handle(Engine::Pulled& event) {
  finish({Kind::pull, event.slice, event.clock}, {.kind = AnswerKind::value,
                                                  .version = event.version,
                                                  .values = std::move(event.values),
                                                  .next_step = event.next_step});
}

void Operations::handle(Engine::Stated& event) {
  const Part part{Kind::state, event.state.slice, 0};
  const auto found = parts_.find(part);
  if (found == parts_.end()) return;
  auto& states = under_way_.at(found->second.front()).outcome.states;
  if (part.slice.index < states.size()) states[part.slice.index] = std::move(event.state);
  finish(part, {});
}

void Operations::handle(const Engine::Passed& event) {
  const auto end = barriers_.upper_bound(event.barriers);
  for (auto each = barriers_.begin(); each != end; ++each)
    done_.emplace_back(each->second, Outcome{});
  barriers_.erase(barriers_.begin(), end);
}

void Operations::handle(Engine::Failed& event) {
  const auto kind = [&] {
    using enum Engine::RequestKind;
    switch (event.request) {
      case init:
        return Kind::init;
      case push:
        return Kind::push;
      case pull:
        return Kind::pull;
      case state:
        break;
    }
    return Kind::state;
  }();
  finish({kind, event.slice, event.clock},
         {.kind = event.kind, .problem = std::move(event.problem)});
}

void Operations::leave_out(const std::function<bool(const SliceId&, std::uint64_t)>& holds) {
  for (auto each = parts_.begin(); each != parts_.end();) {
    const auto& [part, tickets] = *each;
    if (part.kind == Kind::init) {
      ++each;
      continue;
    }
    for (const Ticket ticket : tickets) {
      under_way_.at(ticket).outcome.left_out = true;
      if (part.kind == Kind::push && holds(part.slice, part.clock)) {
        held_.push_back({ticket, part.slice, part.clock});
      } else {
        count_down(ticket);
      }
    }
    each = parts_.erase(each);
  }
}

void Operations::release(const std::function<bool(const SliceId&, std::uint64_t)>& holds) {
  std::erase_if(held_, [&](const Held& each) {
    if (holds(each.slice, each.step)) return false;
    count_down(each.ticket);
    return true;
  });
}

void Operations::finish(const Part& part, Result result) {
  const auto found = parts_.find(part);
  if (found == parts_.end()) return;
  const Ticket ticket = found->second.front();
  found->second.erase(found->second.begin());
  if (found->second.empty()) parts_.erase(found);
  Call& call = under_way_.at(ticket);
  Outcome& outcome = call.outcome;
  if (call.first || rank_of(result.kind) > rank_of(outcome.kind)) {
    outcome.kind = result.kind;
    outcome.problem = std::move(result.problem);
  }
  outcome.version =
      std::exchange(call.first, false) ? result.version : std::min(outcome.version, result.version);
  outcome.next_step = std::max(outcome.next_step, result.next_step);
  if (part.slice.index < outcome.values.size()) {
    if (result.values && !call.into.empty())
      result.values = land(call.into[part.slice.index], *result.values);
    outcome.values[part.slice.index] = std::move(result.values);
  }
  if (result.holds) {
    held_.push_back({ticket, part.slice, part.clock});
  } else {
    count_down(ticket);
  }
}

void Operations::count_down(Ticket ticket) {
  const auto call = under_way_.find(ticket);
  if (--call->second.missing > 0) return;
  done_.emplace_back(ticket, std::move(call->second.outcome));
  under_way_.erase(call);
}

}  // namespace dpwa::kvclient
