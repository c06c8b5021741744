#include "adapters/collective/membership_notes.h"

#include <doctest/doctest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "adapters/collective/next_group.h"

namespace dpwa::collective {
namespace {

nlohmann::json document_of(const GroupNotes& notes) {
  return {{"collective", to_json(notes, 0)}};
}

}  // namespace

TEST_CASE("notes are read as they were written") {
  GroupNotes notes;
  notes.formed = {3, {{0, 11}, {2, 13}}};
  notes.vote = {4, {{0, 11}, {1, 12}, {2, 13}}};
  notes.seeks = notes.apart = notes.waits = true;
  notes.store_port = 4711;
  notes.lost = {1};
  notes.terms = {{"--seed", "1"}};
  const GroupNotes read = group_notes_in(document_of(notes), 3);
  CHECK(read.formed == notes.formed);
  CHECK(read.vote == notes.vote);
  CHECK(read.lost == notes.lost);
  CHECK(read.terms == notes.terms);
  CHECK((read.seeks && read.apart && read.waits && !read.left));
  CHECK(read.store_port == 4711);
}

TEST_CASE("a peer that names places beyond the file, or epochs beyond any run, says nothing") {
  GroupNotes notes;
  notes.formed = {1000, {{0, 11}, {2, 77}, {99'999'999, 5}}};
  notes.vote = {std::numeric_limits<std::uint64_t>::max(), {{0, 11}}};
  notes.lost = {1, 99'999'999};
  notes.seeks = true;
  const GroupNotes read = group_notes_in(document_of(notes), 3);
  CHECK(read.formed == Membership{});
  CHECK(read.vote == Membership{});
  CHECK(read.lost == std::vector<std::size_t>{1});
  CHECK(read.seeks);
  // The rule takes it.
  std::vector<Sight> sights(3);
  for (std::size_t place = 0; place < 3; ++place) {
    sights[place].reach = Sight::Reach::answers;
    sights[place].incarnation = 11 + place;
    sights[place].notes.seeks = true;
  }
  sights[0].notes.formed = {2, {{0, 11}, {1, 12}, {2, 13}}};
  sights[2].notes = read;
  CHECK(next_group(sights, 0, true).group.epoch < 10);
}

TEST_CASE("notes of any form are read without harm") {
  for (const char* text :
       {"{}", "[]", "7", R"({"collective": 7})", R"({"collective": {"formed": 7}})",
        R"({"collective": {"formed": {"epoch": -1, "members": [[0]]}, "terms": [7]}})",
        R"({"collective": {"formed": {"epoch": 1, "members": [[1, 1], [0, 1]]}}})",
        R"({"collective": {"lost": "all", "store_port": 70000, "terms": {"a": "b"}}})"}) {
    CAPTURE(text);
    const GroupNotes read = group_notes_in(nlohmann::json::parse(text), 3);
    CHECK(read.formed.members.empty());
    CHECK(read.lost.empty());
  }
}

}  // namespace dpwa::collective
