#include "dpwa/kvstore/worker_engine.h"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "dpwa/kvstore/lost_words.h"
#include "dpwa/kvstore/slices.h"

namespace dpwa::kvstore {
namespace {

constexpr std::size_t steps_kept = 32;
constexpr std::size_t steps_to_learn_from = 4;
constexpr Duration shown_wait = std::chrono::milliseconds(100);

}  // namespace

WorkerEngine::WorkerEngine(const WorkerOptions& options, const MemberId& self,
                           const std::vector<std::string>& servers)
    : options_(options),
      epochs_(self, servers, options.resend),
      next_tag_(options.first_tag),
      queues_(servers.size()) {}

void WorkerEngine::join() {
  joins_ = true;
  at_end_ = false;
  beaten_ = TimePoint::min();  // sends a beat at the next tick
}

void WorkerEngine::leave() {
  joins_ = at_end_ = false;
  beaten_ = TimePoint::min();
}

void WorkerEngine::finish() {
  joins_ = false;
  at_end_ = true;
  beaten_ = TimePoint::min();
}

void WorkerEngine::at(std::uint64_t clock, bool waiting, TimePoint now) {
  // The training loop may wait several times in a step.
  if (!waiting_) computed_ += now - computes_since_;
  computes_since_ = now;
  if (clock > clock_ && computed_ > Duration::zero()) {
    steps_.push_back(std::exchange(computed_, Duration::zero()));
    if (steps_.size() > steps_kept) steps_.pop_front();
  }
  clock_ = clock;
  waiting_ = waiting;
  called_ = true;
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
      part.values = dpwa::copy_of(bytes);
    }
    Known& slice = slices_[part.slice];
    slice.home = cuts[index].server;
    slice.bytes = cuts[index].elements.count * size;
    add(std::move(part));
    enqueue_all(slice);  // those that were asked for before
  }
}

void WorkerEngine::push(Push push, int priority) {
  if (!step_ || (!options_.own_steps && push.step >= pushed_steps_)) begin_step();
  pushed_steps_ = std::max(pushed_steps_, push.step + 1);
  push.snapshot = step_->snapshot;
  push.begun_in = step_->epoch;
  pushed_.reset();
  if (options_.merged) {
    // An earlier push may only wait for the end of its round: asks when the round ends.
    const bool before = std::ranges::any_of(slices_[push.slice].line, [&](auto tag) {
      return std::holds_alternative<Push>(requests_.at(tag).content);
    });
    if (before) confirm(push.slice, push.step);
  }
  add(std::move(push), priority);
}

void WorkerEngine::confirm(const SliceId& slice, std::uint64_t clock) {
  add(Pull{0, slice, clock, any_version}).confirms = true;
}

void WorkerEngine::pull(Pull pull, int priority) {
  add(std::move(pull), priority);
}

void WorkerEngine::state(StateMessage message) {
  add(std::move(message));
}

const SliceId& WorkerEngine::slice_of(const Request& request) {
  return std::visit([](const auto& content) -> const SliceId& { return content.slice; },
                    request.content);
}

std::optional<std::size_t> WorkerEngine::bytes_of(const SliceId& slice) const {
  const auto known = slices_.find(slice);
  if (known == slices_.end() || !known->second.home) return std::nullopt;
  return known->second.bytes;
}

WorkerEngine::Request& WorkerEngine::add(Content content, int priority) {
  const std::uint64_t tag = next_tag_++;
  Request& request = requests_[tag];
  request.content = std::move(content);
  request.priority = priority;
  request.slice = &slices_[slice_of(request)];
  request.slice->line.push_back(tag);
  if (std::holds_alternative<Push>(request.content)) pushes_.push_back(tag);
  if (std::holds_alternative<Init>(request.content) && inits_++ == 0) snapshot_at_init_ = snapshot_;
  enqueue(tag, request);
  return request;
}

std::size_t WorkerEngine::kind_of(const Request& request) {
  return std::holds_alternative<Pull>(request.content) ? 1 : 0;
}

WorkerEngine::Queue& WorkerEngine::queue_of(const Request& request) {
  DPWA_INVARIANT(*request.queue < queues_.size(), "a request waits for one of the servers",
                 *request.queue, queues_.size());
  return queues_[*request.queue][kind_of(request)];
}

void WorkerEngine::dequeue(std::uint64_t tag, Request& request) {
  if (!request.queue) return;
  const std::size_t erased = queue_of(request).erase({-request.priority, tag});
  DPWA_INVARIANT(erased == 1, "a request is in the queue that it says", tag, *request.queue);
  request.queue.reset();
}

void WorkerEngine::enqueue(std::uint64_t tag, Request& request) {
  dequeue(tag, request);
  request.queue = request.slice->home;
  if (request.queue) queue_of(request).insert({-request.priority, tag});
}

void WorkerEngine::enqueue_all(const Known& slice) {
  for (const std::uint64_t tag : slice.line) {
    Request& request = requests_.at(tag);
    if (request.state == State::queued) enqueue(tag, request);
  }
}

void WorkerEngine::change(std::uint64_t tag, Request& request, State state) {
  if (request.state == State::sent) {
    std::size_t& busy = busy_[request.server][kind_of(request)];
    const std::size_t erased = sent_.erase(tag);
    DPWA_INVARIANT(erased == 1 && request.cost <= busy,
                   "a request that was sent counts in the window of its server", tag, request.cost,
                   busy, request.server);
    busy -= request.cost;
  }
  if (request.state == State::queued) dequeue(tag, request);
  request.state = state;
  if (state == State::sent) {
    busy_[request.server][kind_of(request)] += request.cost;
    sent_.insert(tag);
  }
  if (state == State::queued) enqueue(tag, request);
}

void WorkerEngine::erase(Requests::iterator request) {
  const auto& [tag, content] = *request;
  change(tag, request->second, State::received);  // so it is neither queued nor under way
  Known& slice = *content.slice;
  const bool is_push = std::holds_alternative<Push>(content.content);
  if (std::holds_alternative<Init>(content.content)) --inits_;
  const auto erased = std::erase(slice.line, tag);
  DPWA_INVARIANT(erased == 1, "a request is in the line of its slice once", tag, erased);
  requests_.erase(request);
  if (is_push) enqueue_all(slice);  // those that waited for it
}

// Whether an earlier push has to be answered first: one push is under way at a time, and a worker
// reads what it wrote. A pull of merged values waits for the pushes of its worker anyway.
bool WorkerEngine::has_to_wait(std::uint64_t tag, const Request& request) const {
  const Pull* pull = std::get_if<Pull>(&request.content);
  if (std::holds_alternative<Init>(request.content) || (pull != nullptr && options_.merged)) {
    return false;
  }
  return std::ranges::any_of(request.slice->line, [&](std::uint64_t other) {
    if (other >= tag) return false;
    const Push* push = std::get_if<Push>(&requests_.at(other).content);
    return push != nullptr && (pull == nullptr || push->step < pull->clock);
  });
}

void WorkerEngine::send(std::uint64_t tag, Request& request, const std::string& server,
                        TimePoint now) {
  DPWA_INVARIANT(request.state == State::queued, "what is sent was queued", tag, request.state);
  request.server = server;
  const bool is_short = request.slice->bytes <= short_slice_bytes &&
                        !std::holds_alternative<StateMessage>(request.content);
  request.cost = is_short ? 1 : options_.short_in_one;
  change(tag, request, State::sent);
  request.sent = now;
  std::visit([&](auto& content) { content.epoch = epochs_.installed().number; }, request.content);
  if (const auto* init = std::get_if<Init>(&request.content)) {
    Init copy{init->epoch, init->slice, init->spec, dpwa::copy_of(init->values)};
    outgoing_.push_back({server, tag, std::move(copy)});
    return;
  }
  outgoing_.push_back(
      {server, tag,
       std::visit([](const auto& content) -> Message { return content; }, request.content)});
}

// Sends to one server until its window is full or its queues are empty.
void WorkerEngine::send_from(const std::vector<Queue*>& queues, std::size_t kind,
                             const std::string& server, TimePoint now) {
  const std::size_t& busy = busy_[server][kind];
  while (busy < options_.window * options_.short_in_one) {
    Queue* first = nullptr;
    for (Queue* queue : queues) {
      if (queue->empty()) continue;
      if (first == nullptr || *queue->begin() < *first->begin()) first = queue;
    }
    if (first == nullptr) return;
    const std::uint64_t tag = first->begin()->second;
    Request& request = requests_.at(tag);
    if (has_to_wait(tag, request)) {
      dequeue(tag, request);  // until that push is erased
    } else {
      send(tag, request, server, now);
    }
  }
}

// What a call costs depends on what it sends, not on how much waits.
void WorkerEngine::send_queued(std::size_t kind, TimePoint now) {
  const Epoch& epoch = epochs_.installed();
  if (epoch.number == 0) return;
  std::map<std::size_t, std::vector<Queue*>> by_primary;
  for (std::size_t home = 0; home < queues_.size(); ++home) {
    Queue& queue = queues_[home][kind];
    if (queue.empty()) continue;
    const auto primary = holders_of(epoch, home, options_.replicas).primary;
    if (primary) by_primary[*primary].push_back(&queue);
  }
  for (const auto& [primary, queues] : by_primary) {
    send_from(queues, kind, epoch.servers[primary].id.name, now);
  }
}

std::vector<Outgoing> WorkerEngine::take(TimePoint now) {
  if (over_) return {};
  for (auto& [to, message] : epochs_.take()) {
    outgoing_.push_back(
        {to, 0, std::visit([](auto& content) { return Message(std::move(content)); }, message)});
  }
  if (takes_part_) {
    for (const std::size_t kind : {0, 1}) send_queued(kind, now);
  }
  return std::exchange(outgoing_, {});
}

void WorkerEngine::connected(const std::string& server) {
  beaten_ = TimePoint::min();  // beats for it were lost meanwhile
  for (auto& [tag, request] : requests_) {
    if (request.state == State::sent && request.server == server)
      change(tag, request, State::queued);
  }
}

void WorkerEngine::tick(TimePoint now) {
  if (over_) return;
  for (auto each = sent_.begin(); each != sent_.end();) {
    const std::uint64_t tag = *each++;
    Request& request = requests_.at(tag);
    if (now - request.sent < options_.resend) continue;
    const auto transfer = transfers_.find(request.server);
    if (transfer == transfers_.end() || now - transfer->second >= options_.resend)
      change(tag, request, State::queued);
  }
  end_step_after_pause(now);
  const std::uint64_t past = past_epoch();
  // A worker that has come waits for it.
  const bool news = options_.own_steps && past != told_past_;
  if (!news && beaten_ != TimePoint::min() && now - beaten_ < options_.beat) return;
  beaten_ = now;
  told_past_ = past;
  // A call that only waits for its answer is one of a program that goes on.
  const bool waits = waiting_ && (!options_.own_steps || now - computes_since_ >= shown_wait);
  Beat beat{epochs_.installed().number, clock_, waits, joins_, 0, past_snapshot(), {}};
  beat.own_steps = options_.own_steps;
  beat.active = options_.own_steps && !waits && std::exchange(called_, false);
  beat.at_end = at_end_;
  beat.past_epoch = past;
  if (joins_ && !takes_part_) beat.settings = options_.settings;
  if (steps_.size() >= steps_to_learn_from) {
    const auto longest = std::ranges::max(steps_);
    beat.longest_step_us = static_cast<std::uint64_t>(longest / std::chrono::microseconds(1)) + 1;
  }
  for (const ServerEntry& server : epochs_.installed().servers) {
    outgoing_.push_back({server.id.name, 0, beat});
  }
  if (barriers_ > 0) tell_barrier(passed_ < barriers_);
}

void WorkerEngine::receive(const MemberId& from, std::uint64_t tag, Message message,
                           TimePoint now) {
  if (over_) return;
  // Frames have the low 32 bits of a tag. The request is the latest one with these.
  tag = next_tag_ - static_cast<std::uint32_t>(next_tag_ - tag);
  std::visit(
      [&](auto& content) {
        using Content = std::decay_t<decltype(content)>;
        if constexpr (std::is_same_v<Content, Answer>) {
          if (content.kind == AnswerKind::run_over) {
            if (is_over(content)) end_run(std::move(content.problem));
            return;
          }
          if (is_refusal(content.kind)) return refused(content);
          snapshot_ = std::max(snapshot_, content.snapshot);
          // An answer of an earlier epoch: the request has been sent again.
          if (content.epoch == epochs_.installed().number) return answered(tag, content);
          epochs_.compare(from.name, content.epoch);
          if (content.kind == AnswerKind::other_epoch) refused_by_old_epoch(from, tag, content);
        } else if constexpr (std::is_same_v<Content, StateMessage>) {
          if (content.epoch == epochs_.installed().number) state_given(tag, content);
        } else if constexpr (std::is_same_v<Content, Barrier>) {
          epochs_.compare(from.name, content.epoch);
          // Another epoch may have workers that have not reached the barrier.
          if (content.epoch != epochs_.installed().number || content.count <= passed_) return;
          passed_ = content.count;
          events_.push_back(Passed{passed_});
        } else if constexpr (std::is_same_v<Content, EpochNews>) {
          if (const auto lost = lost_servers(content.epoch)) return end_run(words_for_lost(*lost));
          const std::uint64_t run = epochs_.installed().run;
          const bool first = epochs_.installed().number == 0;
          if (epochs_.receive(from, content, now))
            take_up_epoch(!first && epochs_.installed().run != run);
        } else if constexpr (std::is_constructible_v<EpochMessage, Content>) {
          if (epochs_.receive(from, content, now)) take_up_epoch(false);
        }
      },
      message);
}

void WorkerEngine::take_up_epoch(bool new_run) {
  const Epoch& epoch = epochs_.installed();
  const WorkerEntry* entry = epoch.worker(epochs_.self().name);
  const bool trains = entry != nullptr && entry->id == epochs_.self();
  const bool is_at_end = epoch.is_at_end(epochs_.self());
  const bool member = trains || is_at_end;
  if (new_run) {
    // Snapshots are counted on from the one that it begins with.
    snapshot_ = epoch.from.number;
    snapshot_at_init_ = std::min(snapshot_at_init_, snapshot_);
    pushed_steps_ = 0;
  }
  // Left out, perhaps taken in again without having heard of it.
  const bool again =
      new_run || (trains && (entry->first_step != first_step_ || entry->since != since_));
  const bool left_out = takes_part_ && (!member || again);
  if (left_out) end_part(new_run ? epoch.from.number : 0);
  if (left_out && !member) joins_ = false;
  if (trains && (left_out || !takes_part_)) events_.push_back(Joined{entry->first_step});
  if (trains) {
    first_step_ = entry->first_step;
    since_ = entry->since;
  }
  takes_part_ = member;
  const bool none_trains = is_at_end && epoch.workers.empty();
  if (none_trains && (left_out || !none_trains_)) events_.push_back(AtEnd{});
  none_trains_ = none_trains;
  for (auto& [tag, request] : requests_) change(tag, request, State::queued);
}

void WorkerEngine::end_part(std::uint32_t snapshot) {
  step_.reset();
  drop_requests();
  events_.push_back(LeftOut{snapshot});
}

// Requests of kind INIT stay: the key has to exist in any case.
void WorkerEngine::drop_requests() {
  for (auto each = requests_.begin(); each != requests_.end();) {
    const auto request = each++;
    if (!std::holds_alternative<Init>(request->second.content)) erase(request);
  }
}

}  // namespace dpwa::kvstore
