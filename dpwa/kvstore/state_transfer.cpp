#include "dpwa/kvstore/state_transfer.h"

#include <algorithm>
#include <tuple>

namespace dpwa::kvstore {
namespace {

// Whole numbers up to this one are exact in float64.
constexpr double most = 9007199254740992.0;

std::optional<std::uint64_t> whole(double value) {
  if (!(value >= 0 && value <= most)) return std::nullopt;
  const auto number = static_cast<std::uint64_t>(value);
  if (static_cast<double>(number) != value) return std::nullopt;
  return number;
}

// One that takes part for longer has the weights more surely.
bool older(const WorkerEntry& a, const WorkerEntry& b) {
  return std::tie(a.first_step, a.id) < std::tie(b.first_step, b.id);
}

}  // namespace

NoteValues encode(const TransferNote& note) {
  return {static_cast<double>(note.kind), static_cast<double>(note.step),
          static_cast<double>(note.giver)};
}

std::optional<TransferNote> decode_note(std::span<const double, note_elements> values) {
  const auto kind = whole(values[0]);
  const auto step = whole(values[1]);
  const auto giver = whole(values[2]);
  if (!kind || *kind > static_cast<std::uint64_t>(TransferNote::Kind::lacks) || !step || !giver)
    return std::nullopt;
  return TransferNote{static_cast<TransferNote::Kind>(*kind), *step, *giver};
}

void Newcomer::hear(const TransferNote& note) {
  if (note.kind == TransferNote::Kind::lacks && note.giver != self.incarnation)
    without.insert(note.giver);
  // Others may have taken these.
  if (note.kind == TransferNote::Kind::given) without.clear();
}

TransferMove next_move(const Newcomer& newcomer, const std::vector<WorkerEntry>& workers,
                       const TransferNote& note) {
  using Note = TransferNote::Kind;
  using Move = TransferMove::Kind;
  // Nobody has pushed the step after `next_step`, so the mean of the step before it is still there.
  if (note.kind == Note::given && note.step + 1 >= newcomer.next_step) return {Move::take, 0};

  const bool asked_itself = note.kind == Note::wanted && note.giver == newcomer.self.incarnation;
  if (asked_itself && !newcomer.has_own) return {Move::decline, 0};

  const WorkerEntry* oldest = nullptr;  // of all
  const WorkerEntry* giver = nullptr;   // the oldest of the others
  bool takes_part = false;              // the one that the note names
  for (const WorkerEntry& worker : workers) {
    if (newcomer.without.contains(worker.id.incarnation)) continue;
    if (oldest == nullptr || older(worker, *oldest)) oldest = &worker;
    if (worker.id == newcomer.self) continue;
    if (giver == nullptr || older(worker, *giver)) giver = &worker;
    takes_part |= worker.id.incarnation == note.giver;
  }
  // Others that came back are no better off.
  if (newcomer.has_own && (giver == nullptr || oldest->id == newcomer.self)) return {Move::keep, 0};
  if (giver == nullptr) return {Move::nobody, 0};
  if (takes_part) {
    if (note.kind == Note::writing) return {Move::wait, 0};
    if (note.kind == Note::wanted && note.step >= newcomer.next_step) return {Move::wait, 0};
    if (note.kind == Note::refused && newcomer.asked) return {Move::refused, 0};
  }
  return {Move::ask, giver->id.incarnation};
}

bool is_asked(const MemberId& self, std::uint64_t step, const TransferNote& note) {
  return note.kind == TransferNote::Kind::wanted && note.giver == self.incarnation &&
         step + 1 >= note.step;
}

}  // namespace dpwa::kvstore
