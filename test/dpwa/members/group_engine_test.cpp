#include "dpwa/members/group_engine.h"

#include <doctest/doctest.h>

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

// Processes whose messages arrive at once, unless one of the two ends is cut off.
namespace dpwa::members {
namespace {

using namespace std::chrono_literals;
using Standing = ViewEngine::Standing;

constexpr Duration look = 50ms;

Settings terms_of(const std::string& names, const std::string& seed) {
  return {{"nodes", names}, {"--seed", seed}};
}

class Group {
 public:
  // `in_turn`: each has moments of its own, and messages are on their way for as long as that.
  explicit Group(std::vector<std::string> names, bool in_turn = false, bool judges_at_rest = false)
      : names_(std::move(names)), in_turn_(in_turn), judges_at_rest_(judges_at_rest) {
    for (const std::string& name : names_) start(name);
  }

  void start(const std::string& name, Settings terms = terms_of("all", "1"),
             std::optional<Kept> former = {}) {
    GroupEngineOptions options;
    options.view.self = {name, 1, ++nonce_};
    options.view.names = names_;
    options.view.patience = 300ms;
    options.view.seed = nonce_;
    options.terms = std::move(terms);
    options.lost_after = 1s;
    options.judges_at_rest = judges_at_rest_;
    engines_[name].emplace(std::move(options), std::move(former));
    cut_.erase(name);
    for (auto& [other, engine] : engines_) {
      if (other == name || !engine) continue;
      engine->connected(name);
      engines_[name]->connected(other);
    }
  }
  // Nobody listens there any more.
  std::optional<Kept> end(const std::string& name) {
    engines_[name].reset();
    const auto found = kept_.find(name);
    return found == kept_.end() ? std::nullopt : std::optional(found->second);
  }
  void cut(const std::string& name) { cut_.insert(name); }
  void heal(const std::string& name) { cut_.erase(name); }

  GroupEngine& operator[](const std::string& name) { return *engines_.at(name); }
  const View& view(const std::string& name) { return (*this)[name].views().view(); }
  std::set<std::string> members(const std::string& name) {
    std::set<std::string> found;
    for (const Member& member : view(name).members) found.insert(member.id.name);
    return found;
  }
  TimePoint now() const { return now_; }

  bool comes(Duration within, const std::function<bool()>& holds) {
    for (Duration past{}; past < within; past += look) {
      if (holds()) return true;
      step();
    }
    return holds();
  }
  void pass(Duration time) {
    for (Duration past{}; past < time; past += look) step();
  }

 private:
  void step() {
    now_ += in_turn_ ? look / static_cast<int>(names_.size()) : look;
    ++turn_;
    for (auto& [name, engine] : engines_) {
      if (!engine || (in_turn_ && names_[turn_ % names_.size()] != name)) continue;
      for (const auto& [other, there] : engines_) {
        if (other != name && !there) engine->not_reached(other, /*refused=*/true);
      }
      engine->tick(now_);
    }
    std::deque<std::tuple<ProcessId, std::string, GroupMessage>> way = std::exchange(way_, {});
    const auto collect = [&] {
      auto& later = in_turn_ ? way_ : way;
      for (auto& [name, engine] : engines_) {
        if (!engine) continue;
        auto wishes = engine->take();
        if (wishes.keep) kept_[name] = *wishes.keep;
        for (auto& each : wishes.send)
          later.emplace_back(engine->views().self(), each.to, std::move(each.message));
      }
    };
    collect();
    while (!way.empty()) {
      const auto [from, to, message] = std::move(way.front());
      way.pop_front();
      if (cut_.contains(from.name) || cut_.contains(to) || !engines_[to]) continue;
      engines_[to]->receive(from, message, now_);
      collect();
    }
  }

  const std::vector<std::string> names_;
  const bool in_turn_;
  const bool judges_at_rest_;
  std::size_t turn_ = 0;
  std::deque<std::tuple<ProcessId, std::string, GroupMessage>> way_;
  std::map<std::string, std::optional<GroupEngine>> engines_;
  std::map<std::string, Kept> kept_;
  std::set<std::string> cut_;
  std::uint64_t nonce_ = 0;
  TimePoint now_{1h};
};

using Names = std::set<std::string>;

}  // namespace

TEST_CASE("a run begins with all names, and goes on without one where nobody listens any more") {
  Group group({"a", "b", "c"});
  REQUIRE(group.comes(3s, [&] { return group.members("a").size() == 3; }));
  CHECK(group.view("a").number == 1);
  group.end("a");
  CHECK(group.comes(3s, [&] { return group.members("b") == Names{"b", "c"}; }));
  CHECK(group["b"].lacking(group.now()).empty());
}

TEST_CASE("one that is silent is left out by those who wait, and joins again") {
  Group group({"a", "b", "c"});
  REQUIRE(group.comes(3s, [&] { return group.members("c").size() == 3; }));
  for (const char* name : {"a", "b"}) group[name].set_waiting(true, group.now());
  group.cut("c");
  REQUIRE(group.comes(5s, [&] { return group.members("a") == Names{"a", "b"}; }));
  group.heal("c");
  REQUIRE(group.comes(5s, [&] { return group["c"].views().standing() == Standing::joining; }));
  CHECK(group.members("a").size() == 3);
  // It becomes a member once it has the state of the others.
  for (const char* name : {"a", "b", "c"}) {
    group[name].views().begin_at(group.view(name).number, 7);
    group[name].views().note_state(7, 42);
  }
  CHECK(group.comes(5s, [&] { return group["c"].views().standing() == Standing::member; }));
}

TEST_CASE("nobody is left out for silence while nobody waits") {
  Group group({"a", "b"});
  REQUIRE(group.comes(3s, [&] { return group.members("b").size() == 2; }));
  group.cut("b");
  group.pass(30s);
  CHECK(group.members("a").size() == 2);
}

TEST_CASE("silence counts from the moment at which it is waited for, and the reason is told") {
  Group group({"a", "b", "c"});
  REQUIRE(group.comes(3s, [&] { return group.members("b").size() == 3; }));
  group.cut("b");
  group.pass(30s);
  group["a"].set_waiting(true, group.now());
  group.pass(900ms);
  CHECK(group["a"].peers().at("b").lost.empty());
  group.pass(200ms);
  CHECK(group["a"].peers().at("b").lost == "has not answered for 1.0 s");
  CHECK(group["a"].peers().at("c").lost.empty());
}

TEST_CASE("who judges at rest waits three times as long") {
  Group group({"a", "b"}, /*in_turn=*/false, /*judges_at_rest=*/true);
  REQUIRE(group.comes(3s, [&] { return group.members("b").size() == 2; }));
  group.cut("b");
  group.pass(2900ms);
  CHECK(group["a"].peers().at("b").lost.empty());
  group.pass(300ms);
  CHECK(group["a"].peers().at("b").lost == "has not answered for 3.0 s");
}

TEST_CASE("a part without a quorum says whom it lacks, and why") {
  Group group({"a", "b", "c"});
  REQUIRE(group.comes(3s, [&] { return group.members("c").size() == 3; }));
  group.end("a");
  group.cut("b");
  group["c"].set_seeking(true, group.now());
  REQUIRE(group.comes(5s, [&] { return !group["c"].lacking(group.now()).empty(); }));
  group.pass(2s);
  using Lacking = std::vector<std::pair<std::string, std::string>>;
  CHECK(group["c"].lacking(group.now()) == Lacking{{"a", "not running"}, {"b", "not reachable"}});
  CHECK(group.members("c").size() == 3);
}

TEST_CASE("two that are started again at once give the votes that they have kept") {
  Group group({"a", "b", "c"});
  REQUIRE(group.comes(3s, [&] { return group.members("c").size() == 3; }));
  auto of_a = group.end("a");
  auto of_b = group.end("b");
  REQUIRE(of_a);
  group.start("a", terms_of("all", "1"), std::move(of_a));
  group.start("b", terms_of("all", "1"), std::move(of_b));
  CHECK(group.comes(5s, [&] {
    return group["c"].views().standing() == Standing::member &&
           group["a"].views().standing() == Standing::joining &&
           group["b"].views().standing() == Standing::joining;
  }));
}

TEST_CASE("where all are started again a run begins, whatever they have kept") {
  bool in_turn = false;
  SUBCASE("at one moment") {}
  SUBCASE("each at its own") {
    in_turn = true;
  }
  Group group({"a", "b", "c"}, in_turn);
  REQUIRE(group.comes(3s, [&] { return group.members("c").size() == 3; }));
  auto of_a = group.end("a");
  group.end("b");
  group.end("c");
  group.pass(1s);
  group.start("a", terms_of("all", "1"), std::move(of_a));
  group.start("b");
  group.start("c");
  for (const char* name : {"a", "b", "c"}) {
    CAPTURE(name);
    CHECK(group.comes(10s, [&] {
      return group["a"].views().standing() == Standing::member && group.members(name).size() == 3;
    }));
  }
}

TEST_CASE("one that lets nobody in bars this process from the second time on, until it does") {
  Group group({"a", "b"});
  const auto is_barred = [&] { return group["a"].peers().at("b").bars_us(); };
  group["a"].not_reached("b", /*refused=*/false, "has another cluster key");
  CHECK_FALSE(is_barred());
  group["a"].not_reached("b", /*refused=*/false, "has another cluster key");
  CHECK(is_barred());
  CHECK(group["a"].peers().at("b").barred == "has another cluster key");
  group["a"].connected("b");
  CHECK_FALSE(is_barred());
  group["a"].not_reached("b", /*refused=*/false, "has another cluster key");
  group["a"].not_reached("b", /*refused=*/true);
  group["a"].not_reached("b", /*refused=*/false, "has another cluster key");
  CHECK_FALSE(is_barred());
}

TEST_CASE("one that is given up does not count, though it speaks") {
  Group group({"a", "b", "c"});
  REQUIRE(group.comes(3s, [&] { return group.members("c").size() == 3; }));
  group["a"].give_up("c");
  group["b"].give_up("c");
  CHECK(group.comes(3s, [&] { return group.members("a") == Names{"a", "b"}; }));
}

TEST_CASE("other terms keep a process out of a run, and are named") {
  Group group({"a", "b", "c"});
  REQUIRE(group.comes(3s, [&] { return group.members("c").size() == 3; }));
  group.end("c");
  REQUIRE(group.comes(3s, [&] { return group.members("a").size() == 2; }));
  group.start("c", terms_of("all", "2"));
  group.pass(3s);
  CHECK(group.members("a").size() == 2);
  CHECK(group["a"].peers().at("c").differs == "--seed: 1 on 'a' and 2 on 'c'");
}

TEST_CASE("at the start of a run only the first term keeps a process out") {
  Group group({"a", "b"});
  group.start("b", terms_of("all", "2"));
  CHECK(group.comes(3s, [&] { return group.members("a").size() == 2; }));
  Group others({"a", "b"});
  others.start("b", terms_of("others", "1"));
  others.pass(3s);
  CHECK(others.view("a").open());
}

TEST_CASE(
    "what a process says of itself is known to the others, and a new process has said nothing") {
  Group group({"a", "b"});
  group["b"].set_waiting(true, group.now());
  REQUIRE(group.comes(1s, [&] { return group["a"].peers().at("b").said.waits; }));
  const ProcessId former = group["b"].views().self();
  CHECK(group["a"].counts(former));
  group.end("b");
  group.pass(1s);
  CHECK(group["a"].peers().at("b").refuses());
  group.start("b");
  REQUIRE(group.comes(1s, [&] { return !group["a"].peers().at("b").refuses(); }));
  CHECK_FALSE(group["a"].peers().at("b").said.waits);
  CHECK_FALSE(group["a"].counts(former));
}

TEST_CASE("time in which a process stood still is nobody's silence") {
  Group group({"a", "b"});
  REQUIRE(group.comes(3s, [&] { return group.members("a").size() == 2; }));
  group["a"].set_waiting(true, group.now());
  const TimePoint woken = group.now() + 1min;
  group["a"].tick(woken);
  CHECK_FALSE(group["a"].views().suspects(group["b"].views().self()));
}

TEST_CASE("what is heard before a process knows that it stood still is of that moment") {
  Group group({"a", "b"});
  REQUIRE(group.comes(3s, [&] { return group.members("a").size() == 2; }));
  group["a"].set_waiting(true, group.now());
  const TimePoint woken = group.now() + 1min;
  group["a"].receive(group["b"].views().self(), Beat{}, woken);
  group["a"].tick(woken);
  CHECK(group["a"].peers().at("b").heard == woken);
}

}  // namespace dpwa::members
