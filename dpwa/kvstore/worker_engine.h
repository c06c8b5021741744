#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "dpwa/base/invariant.h"
#include "dpwa/base/settings.h"
#include "dpwa/base/time.h"
#include "dpwa/kvstore/beat_interval.h"
#include "dpwa/kvstore/epoch_engine.h"
#include "dpwa/kvstore/messages.h"

namespace dpwa::kvstore {

inline constexpr std::size_t short_slice_bytes = std::size_t{4} << 10;

struct WorkerOptions {
  bool merged = true;  // as in the servers' ShardRules
  bool replicas = false;
  // True: each key has steps of its own, and the events Created and Pulled say with which step to
  // begin. False: all keys begin with the step that Joined names.
  bool own_steps = false;
  Settings settings{};  // of the cluster file; stated while it wants to take part
  Duration beat = beat_interval(default_lost_after);
  // How long an INIT or PUSH may have no answer before it is sent again, counted from the last
  // transfer(). A PULL, which may wait long for others, is also sent again.
  Duration resend = std::chrono::seconds(1);
  // The most requests of one kind (pulls; others) that are outstanding at one server. Pulls are
  // counted apart because they may have to wait for the pushes of other workers, which must not
  // wait behind pulls.
  std::size_t window = 16;
  // So many requests for slices of at most short_slice_bytes count as one: a round trip for every
  // 16 would cost more than they do.
  std::size_t short_in_one = 16;
  // With own_steps: a step of the program is over when no push of it has been under way for so
  // long.
  Duration step_pause = std::chrono::seconds(2);
  std::uint64_t first_tag = 1;  // of its requests
};

// The requests of one worker to the servers: in which order they leave, what is kept until it is
// acknowledged, and where it is sent again after a change of epoch. Pure: time is an argument. One
// owner, one thread.
//
// A slice has one push under way at a time; the next one waits until it is acknowledged. Requests
// with a higher priority leave first, and of one priority in the order of the calls.
class WorkerEngine {
 public:
  WorkerEngine(const WorkerOptions& options, const MemberId& self,
               const std::vector<std::string>& servers);

  // --- calls of the training loop
  // It is there, and takes part from the step that the event Joined names. Once more after LeftOut.
  void join();
  // Leaves. The event LeftOut follows once the others know, so that they need not wait until this
  // worker counts as silent.
  void leave();
  // It has made its last step, and nobody waits for it any more. AtEnd follows as soon as no worker
  // trains: pulls then get the final values. leave() comes after them.
  void finish();
  // Initialises all slices of a key. `values`: of the whole key; empty to take those of another
  // worker. Throws std::invalid_argument when the key is known already.
  void init(const Key& key, const ValueSpec& spec, std::span<const std::byte> values);
  // With own_steps: the pushes from now on are of the next step of the program. That one is over
  // with the next call, at a barrier, or after WorkerOptions::step_pause.
  void begin_step();
  // Sets the epoch of the push, and the snapshot and the epoch in which its step began: all pushes
  // of a step state the same, so that a snapshot has all of them or none, and a worker that comes
  // takes part in all of them or none. Without own_steps the first push of a higher step begins a
  // step.
  // `lent` stays with the caller until the event Pushed.
  void push(Push push, int priority = 0);
  void pull(Pull pull, int priority = 0);
  // Forgets that the key was initialised, so that another init is possible. Called after Failed.
  void forget(const Key& key) { keys_.erase(key); }
  // Asks for the state of the optimizer, or places it, after the earlier pushes of the slice. Sets
  // the epoch.
  void state(StateMessage message);
  // The next barrier of the program: the event Passed follows.
  void reach_barrier();
  // Sets the step that is pushed next, and whether the training loop now waits for pulls or
  // computes.
  void at(std::uint64_t clock, bool waiting, TimePoint now);
  std::uint64_t clock() const { return clock_; }  // as set by at()

  // --- messages
  void receive(const MemberId& from, std::uint64_t tag, Message message, TimePoint now);
  // A new connection to this server: what was sent over an earlier one may be lost, and is sent
  // again at once, as is a beat at the next tick.
  void connected(const std::string& server);
  // A message is half way to this server or from it: over a slow line its answer, or that of the
  // ones behind it, may take long.
  void transfer(const std::string& server, TimePoint now) { transfers_[server] = now; }
  void tick(TimePoint now);
  std::vector<Outgoing> take(TimePoint now);

  // --- what happened
  struct Joined {
    std::uint64_t first_step = 0;
  };
  // After finish(): no worker trains. Once more after LeftOut.
  struct AtEnd {};
  // The others went on without this worker, which was silent or hung. All requests were dropped.
  struct LeftOut {
    // Not 0: the servers were started again, and a new run has begun with this snapshot.
    std::uint32_t snapshot = 0;
  };
  // Servers were started again and have no snapshot that the run could go on from: values and
  // states of the optimizer are lost. Nothing is sent or taken after it.
  struct RunOver {
    std::string problem;  // in words
  };
  struct Created {
    SliceId slice;
    std::uint64_t next_step = 0;  // of the slice, for this worker: Answer::step
  };
  struct Pushed {
    SliceId slice;
    std::uint64_t step = 0;
    AnswerKind kind = AnswerKind::counted;  // or dropped, or not_finite
    std::uint64_t version = 0;
    SharedBytes values;  // if it wanted them
  };
  struct Pulled {
    SliceId slice;
    std::uint64_t clock = 0;
    std::uint64_t version = 0;
    SharedBytes values;           // none: unchanged
    std::uint64_t next_step = 0;  // as in Created
  };
  // The state that was asked for, or was placed.
  struct Stated {
    StateMessage state;
  };
  // All workers have reached this number of barriers.
  struct Passed {
    std::uint64_t barriers = 0;
  };
  enum class RequestKind : std::uint8_t { init, push, pull, state };
  struct Failed {
    RequestKind request = RequestKind::init;
    SliceId slice;
    std::uint64_t clock = 0;  // of a pull, or the step of a push
    AnswerKind kind = AnswerKind::unknown_key;
    std::string problem;
  };
  // A server does not take this worker in: `kind` is_refusal(), `problem` one line.
  struct Refused {
    AnswerKind kind = AnswerKind::other_settings;
    std::string problem;
  };
  // A former process of this worker, which no longer answers, had a higher number. This one has
  // taken the number `incarnation`, and needs connections that say so.
  struct Renumbered {
    std::uint64_t incarnation = 0;
  };
  using Event = std::variant<Joined, AtEnd, LeftOut, Created, Pushed, Pulled, Stated, Passed,
                             Failed, RunOver, Refused, Renumbered>;
  std::vector<Event> take_events() { return std::exchange(events_, {}); }

  // All pushes that state an earlier snapshot than this one have been acknowledged, all keys that
  // were initialised before it exist, and no more of either follow.
  std::uint32_t past_snapshot();
  // All pushes of steps that began in earlier epochs than this one have been sent, and no more
  // follow.
  std::uint64_t past_epoch();
  const MemberId& self() const { return epochs_.self(); }
  const Epoch& epoch() const { return epochs_.installed(); }
  bool takes_part() const { return takes_part_; }
  std::size_t outstanding() const { return requests_.size(); }  // for tests
  // The value of a slice, in bytes; none: this worker has not initialised it.
  std::optional<std::size_t> bytes_of(const SliceId& slice) const;

 private:
  friend struct InvariantTest<WorkerEngine>;
  enum class State : std::uint8_t {
    queued,
    sent,
    received,  // a push that is counted when its round closes: kept, and sent to a new primary
  };
  using Content = std::variant<Init, Push, Pull, StateMessage>;
  struct Known {
    std::optional<std::uint32_t> home;  // none: this worker has not initialised it
    std::size_t bytes = 0;
    std::vector<std::uint64_t> line;  // the tags of its requests, in the order of the calls
  };
  struct Request {
    Content content;
    Known* slice = nullptr;
    int priority = 0;
    State state = State::queued;
    // The queue that it is in, by the server of its slice. In state queued without one it waits for
    // an earlier push of its slice, or for the INIT of the slice.
    std::optional<std::uint32_t> queue;
    std::string server;  // the server that it was sent to
    TimePoint sent{};
    std::size_t cost = 0;     // in the window of that server
    std::uint64_t again = 0;  // the epoch in which a server refused it that was not in it yet
    AnswerKind so_far = AnswerKind::counted;  // of a push: not_finite after such an answer
    bool confirms = false;  // a pull of this engine itself, to learn that a push has been counted
  };
  // By tag. Nothing depends on the order in which they are gone through.
  using Requests = std::unordered_map<std::uint64_t, Request>;

  static const SliceId& slice_of(const Request& request);
  // The push under way that was asked for first: no other one states an earlier epoch or snapshot.
  const Push* first_push();
  using Queue = std::set<std::pair<int, std::uint64_t>>;  // by priority, then tag

  Request& add(Content content, int priority = 0);
  void erase(Requests::iterator request);
  void change(std::uint64_t tag, Request& request, State state);
  static std::size_t kind_of(const Request& request);  // pulls: 1
  Queue& queue_of(const Request& request);             // of one that is in a queue
  void enqueue(std::uint64_t tag, Request& request);
  void dequeue(std::uint64_t tag, Request& request);
  void enqueue_all(const Known& slice);
  bool has_to_wait(std::uint64_t tag, const Request& request) const;
  void send_queued(std::size_t kind, TimePoint now);
  void send_from(const std::vector<Queue*>& queues, std::size_t kind, const std::string& server,
                 TimePoint now);
  void send(std::uint64_t tag, Request& request, const std::string& server, TimePoint now);
  void take_up_epoch(bool new_run);
  void end_part(std::uint32_t snapshot);
  void refused(Answer& answer);
  bool is_over(const Answer& answer) const;
  // The servers that an epoch of another run says to be started again, without a snapshot.
  std::optional<std::vector<std::string>> lost_servers(const Epoch& epoch) const;
  void end_run(std::string problem);
  static Failed failed(const Request& request, Answer& answer);
  void answered(std::uint64_t tag, Answer& answer);
  void refused_by_old_epoch(const MemberId& from, std::uint64_t tag, const Answer& answer);
  void state_given(std::uint64_t tag, StateMessage& state);
  void push_answered(Requests::iterator request, Answer& answer);
  void pull_answered(Requests::iterator request, Answer& answer);
  void tell_barrier(bool waits);
  void end_step_after_pause(TimePoint now);
  void confirm(const SliceId& slice, std::uint64_t clock);
  void drop_requests();

  const WorkerOptions options_;
  EpochEngine epochs_;
  bool takes_part_ = false;
  bool over_ = false;
  std::uint64_t first_step_ = 0;
  std::uint64_t since_ = 0;
  bool joins_ = false;
  bool at_end_ = false;
  bool none_trains_ = false;
  std::uint64_t clock_ = 0;
  bool waiting_ = true;
  bool called_ = false;  // at(), since the last beat
  TimePoint computes_since_{};
  Duration computed_{};         // in the step that is pushed next
  std::deque<Duration> steps_;  // the recent ones, without waits
  std::uint64_t barriers_ = 0;  // the number that this worker has reached
  std::uint64_t passed_ = 0;
  std::uint32_t snapshot_ = 0;          // the last snapshot that this worker knows of
  std::size_t inits_ = 0;               // requests of kind INIT
  std::uint32_t snapshot_at_init_ = 0;  // that it knew of when it made the first of these
  std::uint64_t pushed_steps_ = 0;      // the step of the last push, plus 1
  // What pushes state of the step of the program that is under way; none: none is.
  struct Begun {
    std::uint32_t snapshot = 0;
    std::uint64_t epoch = 0;
  };
  std::optional<Begun> step_;
  std::optional<TimePoint> pushed_;  // when a push was under way last; none: since the last tick
  std::uint64_t next_tag_;
  Requests requests_;
  std::set<std::uint64_t> sent_;      // those in this state
  std::deque<std::uint64_t> pushes_;  // by tag; those in front may be over: see first_push()
  std::unordered_map<SliceId, Known, SliceHash> slices_;
  std::vector<std::array<Queue, 2>> queues_;                // by the server of the slice, then kind
  std::map<std::string, std::array<std::size_t, 2>> busy_;  // costs in state sent, by server
  std::map<std::string, TimePoint> transfers_;              // by server: the last transfer()
  std::map<Key, ValueSpec> keys_;
  TimePoint beaten_ = TimePoint::min();
  std::uint64_t told_past_ = 0;  // the past epoch in the last beat
  std::vector<Outgoing> outgoing_;
  std::vector<Event> events_;
};

}  // namespace dpwa::kvstore
