#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "dpwa/kvstore/epoch.h"

namespace dpwa::kvstore {

// With kvstore.update: worker the servers have the mean of the gradients only: weights and the
// state of the optimizer are on the workers. A worker that comes to a run, comes back to it, or
// begins it with another checkpoint than the first worker takes them from another one, the giver,
// which places both on the servers. The value of a key of its own, the note, says what is going on.
// The others cannot go on meanwhile, because the step that the newcomer pushes next waits for it.
struct TransferNote {
  enum class Kind : std::uint8_t {
    none = 0,
    wanted = 1,   // a worker asks `giver` for the weights that step `step`, or the one before,
                  // begins with
    writing = 2,  // `giver` places them: what the servers have is a mixture
    given = 3,    // the servers have those that step `step` begins with
    refused = 4,  // `giver` cannot give: the adapter does not know its optimizer
    lacks = 5,    // `giver` was asked, and has no weights itself: it has come, too
  };
  Kind kind = Kind::none;
  std::uint64_t step = 0;
  std::uint64_t giver = 0;  // its incarnation
  bool operator==(const TransferNote&) const = default;
};

// As the value of its key: float64.
inline constexpr std::size_t note_elements = 3;
using NoteValues = std::array<double, note_elements>;
NoteValues encode(const TransferNote& note);
// None of values that are no note.
std::optional<TransferNote> decode_note(std::span<const double, note_elements> values);

// What a worker that wants the weights does next.
struct TransferMove {
  enum class Kind : std::uint8_t {
    take,     // what the servers have
    wait,     // another worker is asked, or gives
    ask,      // the worker `giver`
    keep,     // its own weights: no worker has newer ones
    nobody,   // has any weights
    refused,  // the giver does not give
    decline,  // this worker is asked, and has no weights either
  };
  Kind kind = Kind::wait;
  std::uint64_t giver = 0;  // its incarnation
  bool operator==(const TransferMove&) const = default;
};

struct Newcomer {
  MemberId self;
  std::uint64_t next_step = 0;  // the first step that waits for it
  bool has_own = false;         // it was left out, and has weights of an earlier step
  bool asked = false;           // it has asked before
  // Incarnations of workers that have said that they have no weights either.
  std::set<std::uint64_t> without{};

  void hear(const TransferNote& note);
};
// Pure. `workers` take part, the newcomer among them.
TransferMove next_move(const Newcomer& newcomer, const std::vector<WorkerEntry>& workers,
                       const TransferNote& note);

// Whether the worker `self`, which has the weights that `step` begins with, is asked for them.
bool is_asked(const MemberId& self, std::uint64_t step, const TransferNote& note);

}  // namespace dpwa::kvstore
