#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "dpwa/base/trace.h"
#include "dpwa/kvstore/messages.h"
#include "dpwa/kvstore/worker_engine.h"

namespace dpwa::kvclient {

// A call of the training loop that is under way, for all slices of one key.
using Ticket = std::uint64_t;

// How a call ended.
struct Outcome {
  // The call was not done, because the others went on without this worker.
  bool left_out = false;
  // The worst of the slices: counted < dropped < not_finite < errors.
  kvstore::AnswerKind kind = kvstore::AnswerKind::counted;
  std::string problem;        // one line, if is_error(kind)
  std::uint64_t version = 0;  // the lowest version of the slices
  // The values of the slices, in order, after a pull or a push that wanted them. Null: the value
  // did not come because the push was refused; a pull gives it. If the call named memory for the
  // values, they are there, and these are empty.
  std::vector<kvstore::SharedBytes> values;
  // After an init or a pull: the next step in which this worker pushes the key; the highest of its
  // slices.
  std::uint64_t next_step = 0;
  std::vector<kvstore::StateMessage> states{};  // of a call for states: by slice
};

// The slices that each call still waits for. Pure. One owner, one thread.
class Operations {
 public:
  enum class Kind : std::uint8_t { init, push, pull, state };
  // `clock`: of a pull, or the step of a push; 0 for others.
  void begin(Ticket ticket, Kind kind, const kvstore::Key& key, std::uint64_t clock,
             std::uint32_t slices, bool wants_value);
  // The same with memory for the values of each slice. They are copied there as they arrive, while
  // they are in the cache. The memory is written to until the call is over.
  void begin(Ticket ticket, Kind kind, const kvstore::Key& key, std::uint64_t clock,
             std::vector<std::span<std::byte>> into);

  // The memory for the values of this answer; empty when there is none.
  std::span<std::byte> target(Kind kind, const kvstore::SliceId& slice, std::uint64_t clock) const;

  void begin_barrier(Ticket ticket, std::uint64_t count) { barriers_.emplace(count, ticket); }

  using Engine = kvstore::WorkerEngine;
  void handle(Engine::Created& event);
  // `holds`: the system still reads its memory; see release().
  void handle(Engine::Pushed& event, bool holds);
  void handle(Engine::Pulled& event);
  void handle(Engine::Stated& event);
  void handle(const Engine::Passed& event);
  void handle(Engine::Failed& event);
  // The others went on without this worker: ends all calls but inits and barriers.
  void leave_out(const std::function<bool(const kvstore::SliceId&, std::uint64_t)>& holds);

  // The memory of the pushes that `holds` no longer names is free.
  void release(const std::function<bool(const kvstore::SliceId&, std::uint64_t)>& holds);
  bool holds_memory() const { return !held_.empty(); }

  std::vector<std::pair<Ticket, Outcome>> take_done() { return std::exchange(done_, {}); }
  std::size_t size() const { return under_way_.size(); }

 private:
  struct Part {
    Kind kind = Kind::init;
    kvstore::SliceId slice;
    std::uint64_t clock = 0;
    bool operator==(const Part&) const = default;
  };
  struct PartHash {
    std::size_t operator()(const Part& part) const {
      return kvstore::SliceHash()(part.slice) * 31 + part.clock * 4 +
             static_cast<std::size_t>(part.kind);
    }
  };
  struct Call {
    std::uint32_t missing = 0;  // slices without an answer, or whose memory is held
    bool first = true;
    std::vector<std::span<std::byte>> into;  // by slice, or none
    Outcome outcome;
    std::optional<TraceScope> trace{};
  };
  struct Held {
    Ticket ticket = 0;
    kvstore::SliceId slice;
    std::uint64_t step = 0;
  };

  // The answer that arrived for a slice.
  struct Result {
    kvstore::AnswerKind kind = kvstore::AnswerKind::counted;
    std::uint64_t version = 0;
    kvstore::SharedBytes values{};
    std::string problem{};
    bool holds = false;
    std::uint64_t next_step = 0;
  };
  void finish(const Part& part, Result result);
  void count_down(Ticket ticket);

  std::unordered_map<Ticket, Call> under_way_;
  std::unordered_map<Part, std::vector<Ticket>, PartHash> parts_;  // tickets in the order of calls
  std::map<std::uint64_t, Ticket> barriers_;                       // by count
  std::vector<Held> held_;
  std::vector<std::pair<Ticket, Outcome>> done_;
};

}  // namespace dpwa::kvclient
