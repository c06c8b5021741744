#include "dpwa/kvstore/worker_engine.h"

#include <algorithm>
#include <stdexcept>
#include <type_traits>

#include "dpwa/kvstore/slices.h"

namespace dpwa::kvstore {
namespace {

constexpr std::size_t steps_kept = 32;
constexpr std::size_t steps_to_learn_from = 4;

}  // namespace

WorkerEngine::WorkerEngine(const WorkerOptions& options, const MemberId& self,
                           const std::vector<std::string>& servers)
    : options_(options), epochs_(self, servers, options.resend) {}

void WorkerEngine::join() {
  joins_ = true;
}

void WorkerEngine::at(std::uint64_t clock, bool waiting, TimePoint now) {
  if (waiting && !waiting_) {
    steps_.push_back(now - computes_since_);
    if (steps_.size() > steps_kept) steps_.pop_front();
  }
  if (!waiting) computes_since_ = now;
  clock_ = clock;
  waiting_ = waiting;
}

void WorkerEngine::init(const Key& key, const ValueSpec& spec, std::span<const std::byte> values) {
  if (const auto [known, added] = keys_.try_emplace(key, spec); !added) {
    throw std::invalid_argument("key " + key.text() + " was initialised before, by worker " +
                                epochs_.self().name + ", as " + known->second.text() +
                                "; now it has " + spec.text());
  }
  const std::size_t size = size_of(spec.dtype);
  const auto cuts = cut_into_slices(key, spec.elements(),
                                    static_cast<std::uint32_t>(epochs_.installed().servers.size()));
  for (std::uint32_t index = 0; index < cuts.size(); ++index) {
    Init part{0, {key, index}, spec, {}};
    if (!values.empty()) {
      const auto bytes =
          values.subspan(cuts[index].elements.from * size, cuts[index].elements.count * size);
      part.values.assign(bytes.begin(), bytes.end());
    }
    homes_[part.slice] = cuts[index].server;
    requests_[next_tag_++].content = std::move(part);
  }
}

void WorkerEngine::push(Push push, int priority) {
  if (options_.merged && !push.wants_value) {
    // A push before it that only waits for the end of its round: find out when that is.
    const auto before = std::ranges::find_if(requests_, [&](const auto& entry) {
      return std::holds_alternative<Push>(entry.second.content) &&
             slice_of(entry.second) == push.slice;
    });
    if (before != requests_.end()) confirm(push.slice, push.step);
  }
  Request& request = requests_[next_tag_++];
  request.content = std::move(push);
  request.priority = priority;
}

void WorkerEngine::confirm(const SliceId& slice, std::uint64_t clock) {
  Request& request = requests_[next_tag_++];
  request.content = Pull{0, slice, clock, any_version};
  request.confirms = true;
}

void WorkerEngine::pull(Pull pull, int priority) {
  Request& request = requests_[next_tag_++];
  request.content = std::move(pull);
  request.priority = priority;
}

const SliceId& WorkerEngine::slice_of(const Request& request) {
  return std::visit([](const auto& content) -> const SliceId& { return content.slice; },
                    request.content);
}

std::optional<std::string> WorkerEngine::primary_of(const SliceId& slice) const {
  const auto home = homes_.find(slice);
  const Epoch& epoch = epochs_.installed();
  if (home == homes_.end() || epoch.number == 0) return std::nullopt;
  const auto primary = holders_of(epoch, home->second, options_.replicas).primary;
  if (!primary) return std::nullopt;
  return epoch.servers[*primary].id.name;
}

// Whether a push that was asked for before has to be answered first: one under way at a time, and
// a worker reads what it wrote. A pull of merged values waits for its own pushes anyway.
bool WorkerEngine::has_to_wait(const Request& request,
                               const std::map<SliceId, std::uint64_t>& pushed) const {
  if (std::holds_alternative<Init>(request.content)) return false;
  const auto before = pushed.find(slice_of(request));
  if (before == pushed.end()) return false;
  const Pull* pull = std::get_if<Pull>(&request.content);
  return pull == nullptr || (!options_.merged && before->second < pull->clock);
}

void WorkerEngine::send(std::uint64_t tag, Request& request, const std::string& server,
                        TimePoint now) {
  request.state = State::sent;
  request.server = server;
  request.sent = now;
  std::visit([&](auto& content) { content.epoch = epochs_.installed().number; }, request.content);
  outgoing_.push_back(
      {server, tag,
       std::visit([](const auto& content) -> Message { return content; }, request.content)});
}

std::vector<Outgoing> WorkerEngine::take(TimePoint now) {
  if (takes_part_) {
    // Outstanding by server: pulls, and the others.
    std::map<std::string, std::pair<std::size_t, std::size_t>> busy;
    const auto busy_with = [&](const std::string& server, const Request& request) -> std::size_t& {
      auto& [pulls, others] = busy[server];
      return std::holds_alternative<Pull>(request.content) ? pulls : others;
    };
    std::vector<Requests::iterator> queued;
    std::map<SliceId, std::uint64_t> pushed;  // the lowest step of a push that is under way
    for (auto each = requests_.begin(); each != requests_.end(); ++each) {
      if (each->second.state == State::sent) ++busy_with(each->second.server, each->second);
      const bool waits = has_to_wait(each->second, pushed);
      if (each->second.state == State::queued && !waits) queued.push_back(each);
      if (const auto* push = std::get_if<Push>(&each->second.content)) {
        pushed.try_emplace(push->slice, push->step);
      }
    }
    std::ranges::stable_sort(queued, std::greater{},
                             [](const auto& each) { return each->second.priority; });
    for (const auto& each : queued) {
      auto& [tag, request] = *each;
      const auto server = primary_of(slice_of(request));
      if (!server) continue;
      std::size_t& count = busy_with(*server, request);
      if (count >= options_.window) continue;
      ++count;
      send(tag, request, *server, now);
    }
  }
  for (auto& [to, message] : epochs_.take()) {
    outgoing_.push_back(
        {to, 0, std::visit([](auto& content) { return Message(std::move(content)); }, message)});
  }
  return std::exchange(outgoing_, {});
}

void WorkerEngine::tick(TimePoint now) {
  for (auto& [tag, request] : requests_) {
    if (request.state == State::sent && now - request.sent >= options_.resend) {
      request.state = State::queued;
    }
  }
  if (beaten_ != TimePoint::min() && now - beaten_ < options_.beat) return;
  beaten_ = now;
  Beat beat{epochs_.installed().number, clock_, waiting_, joins_, 0, 0, {}};
  if (steps_.size() >= steps_to_learn_from) {
    const auto longest = std::ranges::max(steps_);
    beat.longest_step_us = static_cast<std::uint64_t>(longest / std::chrono::microseconds(1)) + 1;
  }
  for (const ServerEntry& server : epochs_.installed().servers) {
    outgoing_.push_back({server.id.name, 0, beat});
  }
}

void WorkerEngine::receive(const MemberId& from, std::uint64_t tag, Message message,
                           TimePoint now) {
  std::visit(
      [&](auto& content) {
        using Content = std::decay_t<decltype(content)>;
        if constexpr (std::is_same_v<Content, Answer>) {
          snapshot_ = std::max(snapshot_, content.snapshot);
          // Of an earlier epoch: the request has been sent again.
          if (content.epoch == epochs_.installed().number) return answered(tag, content);
          epochs_.compare(from.name, content.epoch);
        } else if constexpr (std::is_constructible_v<EpochMessage, Content>) {
          if (epochs_.receive(from, content, now)) take_up_epoch();
        }
      },
      message);
}

void WorkerEngine::take_up_epoch() {
  const WorkerEntry* entry = epochs_.installed().worker(epochs_.self().name);
  const bool member = entry != nullptr && entry->id == epochs_.self();
  if (!member && takes_part_) {
    takes_part_ = false;
    joins_ = false;
    drop_requests();
    events_.push_back(LeftOut{});
  }
  if (member && !takes_part_) {
    takes_part_ = true;
    events_.push_back(Joined{entry->first_step});
  } else if (member && entry->first_step != first_step_) {
    // Left out and taken in again, without having heard of it.
    drop_requests();
    events_.push_back(LeftOut{});
    events_.push_back(Joined{entry->first_step});
  }
  if (member) first_step_ = entry->first_step;
  for (auto& [tag, request] : requests_) request.state = State::queued;
}

// Those for an INIT stay: the key has to be there in any case.
void WorkerEngine::drop_requests() {
  std::erase_if(requests_, [](const auto& entry) {
    return !std::holds_alternative<Init>(entry.second.content);
  });
}

void WorkerEngine::answered(std::uint64_t tag, Answer& answer) {
  const auto found = requests_.find(tag);
  if (found == requests_.end()) return;
  if (slice_of(found->second) != answer.slice) return;
  if (is_error(answer.kind)) {
    events_.push_back(Failed{answer.slice, answer.kind, std::move(answer.problem)});
    requests_.erase(found);
    return;
  }
  switch (answer.kind) {
    case AnswerKind::other_epoch:
    case AnswerKind::not_primary:
    case AnswerKind::not_member:
      return;  // is sent again with the next epoch, or after a while
    case AnswerKind::created:
      events_.push_back(Created{answer.slice});
      requests_.erase(found);
      return;
    case AnswerKind::value:
    case AnswerKind::unchanged:
      return pull_answered(found, answer);
    default:
      return push_answered(found, answer);
  }
}

void WorkerEngine::push_answered(Requests::iterator request, Answer& answer) {
  const Push* push = std::get_if<Push>(&request->second.content);
  if (push == nullptr) return;
  const bool not_finite = answer.kind == AnswerKind::not_finite;
  if (answer.kind == AnswerKind::received || (not_finite && options_.merged)) {
    // A new primary has to hear of it again, or it waits for this worker.
    const bool first = request->second.state != State::received;
    request->second.state = State::received;
    if (not_finite) request->second.so_far = AnswerKind::not_finite;
    if (not_finite && first && push->wants_value) confirm(push->slice, push->step + 1);
    return;
  }
  events_.push_back(
      Pushed{answer.slice, push->step, answer.kind, answer.version, std::move(answer.values)});
  requests_.erase(request);
}

void WorkerEngine::pull_answered(Requests::iterator request, Answer& answer) {
  const Pull* pull = std::get_if<Pull>(&request->second.content);
  if (pull == nullptr) return;
  const std::uint64_t clock = pull->clock;
  if (!request->second.confirms) {
    events_.push_back(Pulled{answer.slice, clock, answer.version, std::move(answer.values)});
  }
  requests_.erase(request);
  if (!options_.merged) return;
  // All steps below its clock are acknowledged, also if the answer to the push is still to come.
  std::erase_if(requests_, [&](const auto& entry) {
    const Push* push = std::get_if<Push>(&entry.second.content);
    if (push == nullptr || push->slice != answer.slice || push->step >= clock) return false;
    events_.push_back(
        Pushed{push->slice, push->step, entry.second.so_far, answer.version, nullptr});
    return true;
  });
}

}  // namespace dpwa::kvstore
