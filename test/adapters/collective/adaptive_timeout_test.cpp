#include <doctest/doctest.h>

#include <chrono>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "adapters/collective/adaptive_timeout.h"
#include "adapters/collective/membership_notes.h"
#include "adapters/collective/next_group.h"
#include "adapters/collective/terms.h"
#include "dpwa/net/local_node.h"

namespace dpwa::collective {
namespace {

using namespace std::chrono_literals;
using View = Lateness::View;

constexpr Lateness::Options options{60s, 10s};

View waiting(const std::string& name) {
  return {name, true, false, true};
}
View working(const std::string& name) {
  return {name, true, false, false};
}
View silent(const std::string& name) {
  return {name, false, false, false};
}
View refusing(const std::string& name) {
  return {name, false, true, false};
}

}  // namespace

TEST_CASE("how long a wait may last is learned from the waits of the run") {
  AdaptiveTimeout patience(0s);
  CHECK(patience.before_looking() == 1s);
  for (int i = 0; i < 64; ++i) patience.waited(i % 2 == 0 ? 4ms : 6ms);
  CHECK(patience.before_looking() == 100ms);
  for (int i = 0; i < 64; ++i) patience.waited(i % 2 == 0 ? 100ms : 140ms);
  CHECK(patience.before_looking() > 200ms);
  CHECK(patience.before_looking() < 500ms);
  for (int i = 0; i < 64; ++i) patience.waited(10s);
  CHECK(patience.before_looking() == 2s);
}

TEST_CASE("one long wait among many changes little") {
  AdaptiveTimeout patience(0s);
  for (int i = 0; i < 63; ++i) patience.waited(std::chrono::milliseconds(30 + i % 3));
  patience.waited(5s);
  CHECK(patience.before_looking() < 150ms);
}

TEST_CASE("how long a silent node is waited for is learned from answers, unless it is given") {
  AdaptiveTimeout learned(0s);
  CHECK(learned.before_lost() == 2s);
  for (int i = 0; i < 10; ++i) learned.answered(5ms);
  CHECK(learned.before_lost() == 2s);
  for (int i = 0; i < 64; ++i) learned.answered(500ms);
  CHECK(learned.before_lost() == 5s);
  AdaptiveTimeout given(700ms);
  given.answered(500ms);
  CHECK(given.before_lost() == 700ms);
  CHECK(given.of_a_look() < 250ms);
  CHECK(learned.of_a_look() == 1s);
}

TEST_CASE("a rank that answers is named once after a while, and lost after a long one alone") {
  Lateness lateness(options);
  CHECK(lateness.judge({working("w2"), waiting("w3")}, 9s, 5s).late.empty());
  CHECK(lateness.judge({working("w2"), waiting("w3")}, 10s, 5s).late ==
        std::vector<std::string>{"w2"});
  CHECK(lateness.judge({working("w2"), waiting("w3")}, 11s, 5s).late.empty());
  CHECK(lateness.judge({working("w2"), waiting("w3")}, 59s, 5s).lost.empty());
  const auto verdict = lateness.judge({working("w2"), waiting("w3")}, 60s, 5s);
  CHECK(verdict.lost == "w2");
  CHECK(verdict.why == "answers, but has not come for 60.0 s");
}

TEST_CASE("a rank that is silent without a break is lost, and one that answers again is not") {
  Lateness lateness(options);
  CHECK(lateness.judge({silent("w2")}, 1s, 5s).lost.empty());
  CHECK(lateness.judge({silent("w2")}, 5s, 5s).lost.empty());
  CHECK(lateness.judge({working("w2")}, 5500ms, 5s).lost.empty());
  CHECK(lateness.judge({silent("w2")}, 6s, 5s).lost.empty());
  CHECK(lateness.judge({silent("w2")}, 10s, 5s).lost.empty());
  CHECK(lateness.judge({silent("w2")}, 11s, 5s).lost == "w2");
}

TEST_CASE("a rank where nothing listens is lost at the second look in a row") {
  Lateness lateness(options);
  CHECK(lateness.judge({refusing("w2"), waiting("w3")}, 1s, 5s).lost.empty());
  CHECK(lateness.judge({waiting("w2"), waiting("w3")}, 1500ms, 5s).lost.empty());
  CHECK(lateness.judge({refusing("w2"), waiting("w3")}, 2s, 5s).lost.empty());
  const auto verdict = lateness.judge({refusing("w2"), waiting("w3")}, 2500ms, 5s);
  CHECK(verdict.lost == "w2");
  CHECK(verdict.why == "is no longer running");
}

TEST_CASE("a wait that ended leaves nothing for the next") {
  Lateness lateness(options);
  CHECK(lateness.judge({refusing("w2"), silent("w3")}, 6s, 5s).lost.empty());
  lateness.reset();
  CHECK(lateness.judge({refusing("w2"), silent("w3")}, 1s, 5s).lost.empty());
}

TEST_CASE("zero switches off the word and the loss of ranks that answer") {
  Lateness lateness({0s, 0s});
  const auto verdict = lateness.judge({working("w2")}, 10h, 5s);
  CHECK(verdict.late.empty());
  CHECK(verdict.lost.empty());
}

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
  CHECK(read.formed == GroupMembers{});
  CHECK(read.vote == GroupMembers{});
  CHECK(read.lost == std::vector<std::size_t>{1});
  CHECK(read.seeks);
  // The rule takes it.
  std::vector<MemberView> views(3);
  for (std::size_t place = 0; place < 3; ++place) {
    views[place].reach = MemberView::Reach::answers;
    views[place].incarnation = 11 + place;
    views[place].notes.seeks = true;
  }
  views[0].notes.formed = {2, {{0, 11}, {1, 12}, {2, 13}}};
  views[2].notes = read;
  CHECK(next_group(views, 0, true).group.epoch < 10);
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

TEST_CASE("a short list of nodes is shown, a long one as a number, and both in their order") {
  Config config;
  for (const char* name : {"b", "a"}) {
    config.nodes.emplace_back();
    config.nodes.back().name = name;
  }
  const Settings two = file_terms(config);
  CHECK(two == Settings{{"nodes of the cluster file", "b, a"}});
  for (int i = 0; i < 500; ++i) {
    config.nodes.emplace_back();
    config.nodes.back().name = "node" + std::to_string(i);
  }
  const Settings many = file_terms(config);
  CHECK(many.front().second.size() < 64);
  CHECK(many.front().second.starts_with("502 names"));
  std::swap(config.nodes[100], config.nodes[101]);
  CHECK(file_terms(config) != many);
}

TEST_CASE("a node that can never be in the first group is named, and others are waited for") {
  const Settings terms = {{"nodes of the cluster file", "a, b"}, {"--seed", "1"}};
  std::vector<MemberView> views(2);
  views[0].name = "a";
  views[1].name = "b";
  for (MemberView& view : views) {
    view.reach = MemberView::Reach::answers;
    view.notes.terms = terms;
  }
  CHECK(stranger_in(views, 0).empty());
  views[1].backend = "gossip";
  CHECK(stranger_in(views, 0) == "'b' runs backend gossip");
  views[1].backend = "collective";
  // All hear that in the group.
  views[1].notes.terms.back().second = "2";
  const auto compare = [&] {
    views[1].differs = first_difference({"a", terms}, {"b", views[1].notes.terms}).value_or("");
  };
  compare();
  CHECK(stranger_in(views, 0).empty());
  // But into a group that trains nobody comes with it.
  views[1].notes.formed.epoch = 1;
  CHECK(stranger_in(views, 0) == "'b' differs: --seed: 1 on 'a' and 2 on 'b'");
  views[0].notes.vote = views[1].notes.formed;  // which has formed there a moment ago
  CHECK(stranger_in(views, 0).empty());
  views[0].notes.vote = {};
  // Unless others train in one that takes this node in: then that one is the stranger.
  views.push_back(views[0]);
  views[2].name = "c";
  views[2].notes.formed.epoch = 4;
  CHECK(stranger_in(views, 0).empty());
  views[2].reach = MemberView::Reach::silent;  // as it may be
  CHECK(stranger_in(views, 0).empty());
  views[2].given_up = true;
  CHECK_FALSE(stranger_in(views, 0).empty());
  views.pop_back();
  views[1].notes.formed.epoch = 0;
  views[1].notes.terms.front().second = "b, a";
  compare();
  CHECK(stranger_in(views, 0) ==
        "'b' differs: nodes of the cluster file: a, b on 'a' and b, a on 'b'");
  // One of the last run, about to end.
  views[1].notes.left = true;
  CHECK(stranger_in(views, 0).empty());
  views[1].notes.left = false;
  views[1].finished = true;
  CHECK(stranger_in(views, 0).empty());
  views[1].finished = false;
  views[1].reach = MemberView::Reach::silent;
  CHECK(stranger_in(views, 0).empty());
  // In a group that was formed already, the rule of next_group() decides.
  views[1].reach = MemberView::Reach::answers;
  views[0].notes.formed.epoch = 3;
  CHECK(stranger_in(views, 0).empty());
}

}  // namespace dpwa::collective
