#include "dpwa/kvstore/state_transfer.h"

#include <doctest/doctest.h>

#include <limits>

namespace dpwa::kvstore {
namespace {

using Note = TransferNote::Kind;
using Move = TransferMove::Kind;

const MemberId first{"w2", 11};
const MemberId second{"w3", 12};
const MemberId newcomer{"w1", 20};

const std::vector<WorkerEntry> three = {{newcomer, 8}, {first, 0}, {second, 4}};

TransferMove move(const TransferNote& note, const std::vector<WorkerEntry>& workers = three,
                  bool has_own = false, bool asked = false) {
  return next_move({newcomer, 9, has_own, asked}, workers, note);
}

}  // namespace

TEST_CASE("a note survives its form, and values that are no note are none") {
  const TransferNote note{Note::given, 1234567, 1'790'000'000'000'000};
  CHECK(decode_note(encode(note)) == note);
  CHECK(decode_note(encode(TransferNote{})) == TransferNote{});
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const NoteValues& values : {NoteValues{6, 0, 0}, NoteValues{1, -1, 0}, NoteValues{1, 0.5, 0},
                                   NoteValues{nan, 0, 0}, NoteValues{1, 0, 1e17}}) {
    CHECK(decode_note(values) == std::nullopt);
  }
}

TEST_CASE("a worker that comes asks the one that takes part for longest") {
  CHECK(move({}) == TransferMove{Move::ask, first.incarnation});
  CHECK(move({}, {{newcomer, 8}, {second, 4}}) == TransferMove{Move::ask, second.incarnation});
  // Also where steps do not tell: all began with 0.
  CHECK(move({}, {{newcomer, 0}, {first, 0}}) == TransferMove{Move::ask, first.incarnation});
}

TEST_CASE("weights count from the step before the one that waits on") {
  CHECK(move({Note::given, 8, first.incarnation}).kind == Move::take);
  CHECK(move({Note::given, 9, first.incarnation}).kind == Move::take);
  CHECK(move({Note::given, 7, first.incarnation}).kind == Move::ask);
  // Its giver may have ended: the servers have them.
  CHECK(move({Note::given, 9, 1}).kind == Move::take);
}

TEST_CASE("a giver that is asked or writes is waited for while it takes part") {
  CHECK(move({Note::writing, 8, second.incarnation}).kind == Move::wait);
  CHECK(move({Note::writing, 8, 1}).kind == Move::ask);
  CHECK(move({Note::wanted, 9, first.incarnation}).kind == Move::wait);
  CHECK(move({Note::wanted, 8, first.incarnation}).kind == Move::ask);
  CHECK(move({Note::wanted, 9, 1}).kind == Move::ask);
  // It is asked itself, and has none, or those of an earlier step.
  CHECK(move({Note::wanted, 9, newcomer.incarnation}).kind == Move::decline);
  CHECK(move({Note::wanted, 9, newcomer.incarnation}, three, true) ==
        TransferMove{Move::ask, first.incarnation});
}

TEST_CASE("workers that have all come and have no weights end instead of waiting for each other") {
  Newcomer one{newcomer, 9, false, true, {}};
  const auto hears = [&](const TransferNote& note) {
    one.hear(note);
    return next_move(one, three, note);
  };
  const TransferNote first_lacks{Note::lacks, 9, first.incarnation};
  CHECK(hears(first_lacks) == TransferMove{Move::ask, second.incarnation});
  CHECK(hears({Note::lacks, 9, newcomer.incarnation}).kind == Move::ask);  // its own answer
  CHECK(hears({Note::lacks, 9, second.incarnation}).kind == Move::nobody);
  // One that was left out has weights of its own.
  one.has_own = true;
  CHECK(hears({}).kind == Move::keep);
  one.has_own = false;
  // Somebody has given: the others may have taken it.
  CHECK(hears({Note::given, 7, 1}) == TransferMove{Move::ask, first.incarnation});
}

TEST_CASE("a refusal counts once this worker has asked") {
  const TransferNote refusal{Note::refused, 8, first.incarnation};
  CHECK(move(refusal).kind == Move::ask);
  CHECK(move(refusal, three, false, true).kind == Move::refused);
  CHECK(move({Note::refused, 8, 1}, three, false, true).kind == Move::ask);
}

TEST_CASE("without other workers, one that was left out keeps its weights, and another has none") {
  const std::vector<WorkerEntry> alone = {{newcomer, 8}};
  CHECK(move({}, alone).kind == Move::nobody);
  CHECK(move({}, alone, true).kind == Move::keep);
  // The others came back as well, and later.
  CHECK(move({}, {{newcomer, 8}, {first, 9}}, true).kind == Move::keep);
  CHECK(move({}, three, true).kind == Move::ask);
}

TEST_CASE("only the worker that is asked gives, at a step that serves") {
  const TransferNote wanted{Note::wanted, 9, first.incarnation};
  CHECK(is_asked(first, 8, wanted));
  CHECK(is_asked(first, 9, wanted));
  CHECK_FALSE(is_asked(first, 7, wanted));
  CHECK_FALSE(is_asked(second, 9, wanted));
  CHECK_FALSE(is_asked(first, 9, {Note::given, 9, first.incarnation}));
}

}  // namespace dpwa::kvstore
