#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "dpwa/kvstore/compression.h"
#include "dpwa/kvstore/epoch.h"
#include "dpwa/kvstore/epoch_engine.h"
#include "dpwa/kvstore/member_watch.h"
#include "dpwa/kvstore/values.h"
#include "dpwa/snapshot/loan.h"
#include "dpwa/snapshot/reused_memory.h"

namespace dpwa::kvstore {

// The messages of the store as values; dpwa/wire has their bytes. A server receives INIT, PUSH,
// PULL and STATE from workers and replies to each with one ANSWER; to a STATE that asks, it replies
// with the STATE instead. FORWARD, SYNC, COPY, STORED and WANT go between the two servers that have
// a slice. BARRIER goes between workers and servers.

struct SliceId {
  Key key;
  std::uint32_t index = 0;  // index in the result of cut_into_slices()
  auto operator<=>(const SliceId&) const = default;
  bool operator==(const SliceId&) const = default;
};

struct SliceHash {
  std::size_t operator()(const SliceId& slice) const {
    const Key& key = slice.key;
    const std::size_t hash = key.is_number() ? std::hash<std::int64_t>()(key.number())
                                             : std::hash<std::string>()(key.name());
    return hash + slice.index;
  }
};

// Bytes with several readers, which nobody changes while they are shared: values that are being
// sent or written to a snapshot while updates of the slice continue.
using Bytes = ReusedBytes;
using SharedBytes = std::shared_ptr<Bytes>;

// Every worker initialises every key; the value of the first worker of the epoch counts.
struct Init {
  std::uint64_t epoch = 0;
  SliceId slice;
  ValueSpec spec;  // of the whole key
  Bytes values;    // of the slice; empty: this worker waits for another worker's values
  bool operator==(const Init&) const = default;
};

enum class Merge : std::uint8_t {
  sum = 1,  // Σ weight · gradient
  // Σ weight · gradient / Σ weight. If no push counts, or all weights are 0: no update, and without
  // an optimizer a value of NaN.
  mean = 2,
};

struct Push {
  std::uint64_t epoch = 0;
  SliceId slice;
  std::uint64_t step = 0;
  double weight = 1;  // finite, not negative
  Merge merge = Merge::sum;
  bool wants_value = false;  // the answer has the value after the update
  // When the step of its worker's program began: the last snapshot that the worker knew of, and its
  // epoch.
  std::uint32_t snapshot = 0;
  std::uint64_t begun_in = 0;
  Bytes optimizer;  // encode(OptimizerOptions); empty: the merged value replaces the stored one
  Compression compression = Compression::none;
  Bytes values;  // in that form
  // Instead of `values`: memory of the worker, which it leaves alone until the push is answered.
  Loan lent;
  std::optional<MemoryPlace> place;  // where that memory is, on the wire

  std::span<const std::byte> content() const {
    return lent.bytes.empty() ? std::span(values) : lent.bytes;
  }
};

// As the known version of a pull: the pull only waits, and no value is sent.
inline constexpr std::uint64_t any_version = std::numeric_limits<std::uint64_t>::max();

struct Pull {
  std::uint64_t epoch = 0;
  SliceId slice;
  std::uint64_t clock = 0;          // the steps that the worker has pushed
  std::uint64_t known_version = 0;  // the value of this version is not sent again; 0: none
  bool operator==(const Pull&) const = default;
};

enum class AnswerKind : std::uint8_t {
  created = 1,   // INIT: the key is there
  received = 2,  // PUSH: counted when the round closes; the worker keeps it until then
  counted = 3,   // PUSH: part of the value, and stored by the replica
  dropped = 4,   // PUSH: its round was closed without it
  // PUSH: refused; the round is closed without its worker. Also after `received`: the sum of the
  // round is not finite.
  not_finite = 5,
  value = 6,      // PULL
  unchanged = 7,  // PULL: the version is the known one
  // Errors; nothing was done:
  other_epoch = 8,
  not_primary = 9,
  not_member = 10,
  unknown_key = 11,
  wrong_spec = 12,
  no_optimizer = 13,   // updates at each push need one
  bad_optimizer = 14,  // unknown to the server, or with invalid hyper-parameters
  no_memory = 15,      // the value or its optimizer state would exceed the server's bound
  // To a worker that wants to take part; of no slice:
  other_settings = 16,  // Beat::settings
  // To be tried again: by another process that takes part; or, where `step` is not 0, by a former
  // one with that number, which no longer answers (WorkerEngine::Renumbered). The latter to servers
  // as well.
  name_taken = 17,
  // To a worker whose beat shows that it has not heard of the last snapshot; of no slice.
  snapshot_begun = 18,
  // To a worker of run `version` in epoch `step` of it, or in an earlier one: it cannot continue,
  // because servers were started again; of no slice.
  run_over = 19,
};
constexpr bool is_refusal(AnswerKind kind) {
  return kind == AnswerKind::other_settings || kind == AnswerKind::name_taken;
}
constexpr bool is_error(AnswerKind kind) {
  return kind >= AnswerKind::unknown_key && kind <= AnswerKind::name_taken;
}

struct Answer {
  std::uint64_t epoch = 0;  // of the server
  SliceId slice;
  AnswerKind kind = AnswerKind::counted;
  // To a PUSH: its step. To an INIT or PULL: the step from which on this worker has to push the
  // slice, if it has pushed nothing since it takes part.
  std::uint64_t step = 0;
  // Of the value: grows by one with each update. With name_taken and a step: an epoch's number, if
  // that is higher.
  std::uint64_t version = 0;
  SharedBytes values;                  // null for kinds without a value
  std::string problem;                 // one line, if it is an error, or of a run that is over
  std::uint32_t snapshot = 0;          // the last snapshot that the server knows of
  std::optional<MemoryPlace> place{};  // instead of the values, on the wire
};

// How far a worker has pushed a slice: all steps below `next` have been counted or left out.
struct Advance {
  MemberId worker;
  std::uint64_t next = 0;
  bool operator==(const Advance&) const = default;
};

// One update of a slice, which the replica repeats.
struct Forward {
  std::uint64_t epoch = 0;
  SliceId slice;
  std::uint64_t version = 0;  // after the update
  std::uint64_t round = 0;    // all rounds below it are closed
  std::vector<Advance> advances;
  Bytes optimizer;
  double scale = 1;            // of the gradient
  std::uint32_t snapshot = 0;  // as in PUSH
  Bytes gradient;              // the merged gradient in the type of the computation; empty: none
};

// Asks the replica whether it has this version, made in epoch `stamp`.
struct Sync {
  std::uint64_t epoch = 0;
  SliceId slice;
  std::uint64_t version = 0;
  std::uint64_t stamp = 0;
  bool operator==(const Sync&) const = default;
};

// The whole of a slice.
struct Copy {
  std::uint64_t epoch = 0;
  SliceId slice;
  ValueSpec spec;
  std::uint64_t version = 0;
  std::uint64_t stamp = 0;
  std::uint64_t round = 0;
  std::vector<Advance> clocks;
  SharedBytes values;
  Bytes optimizer;  // of the last update; empty: none
  std::uint64_t optimizer_steps = 0;
  std::uint32_t snapshot = 0;  // that has begun for this slice
  Bytes optimizer_state;
};

struct Stored {
  std::uint64_t epoch = 0;
  SliceId slice;
  std::uint64_t version = 0;
  bool operator==(const Stored&) const = default;
};

// The replica needs a COPY.
struct Want {
  std::uint64_t epoch = 0;
  SliceId slice;
  bool operator==(const Want&) const = default;
};

// The optimizer state of a slice: a worker saves it to a file, or loads it from one.
struct StateMessage {
  enum class Kind : std::uint8_t {
    ask = 1,    // worker: asks for the state
    place = 2,  // worker: replaces the state by this one
    give = 3,   // server: replies with the state
  };
  std::uint64_t epoch = 0;
  SliceId slice;
  Kind kind = Kind::ask;
  Bytes optimizer;  // encode(OptimizerOptions); empty: `ask`, or no optimizer has updated the slice
  std::uint64_t steps = 0;  // updates so far
  Bytes state;              // OptimizerState::bytes()
  bool operator==(const StateMessage&) const = default;
};

// From a worker to every server: how many barriers of its program it has reached. From a server:
// how many barriers all workers of the epoch have reached (barriers.h).
struct Barrier {
  std::uint64_t epoch = 0;
  std::uint64_t count = 0;
  bool waits = false;  // worker: waits at the last of them
  bool operator==(const Barrier&) const = default;
};

using Message =
    std::variant<Beat, Ballot, Promise, Proposal, Vote, EpochNews, AskEpoch, Init, Push, Pull,
                 Answer, Forward, Sync, Copy, Stored, Want, StateMessage, Barrier>;

// A message on its way out. `tag`: of the request that it answers; 0 otherwise.
struct Outgoing {
  std::string to;
  std::uint64_t tag = 0;
  Message message;
};

}  // namespace dpwa::kvstore
