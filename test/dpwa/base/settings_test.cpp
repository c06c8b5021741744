#include "dpwa/base/settings.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace dpwa {
namespace {

const Settings sync{{"kvstore.type", "dist_sync"}, {"kvstore.update", "server"}};
const Settings async{{"kvstore.type", "dist_async"}, {"kvstore.update", "server"}};

std::string between(const Settings& s1, const Settings& w1) {
  return first_difference({"s1", s1}, {"w1", w1}).value_or("none");
}

}  // namespace

TEST_CASE("all settings that differ are listed with both values, the own ones first") {
  const Settings slow{{"--lr", "0.03"}}, fast{{"--lr", "0.1"}, {"--seed", "2"}};
  const auto words = [](const Settings& own, const Settings& other) {
    std::string all;
    for (const auto& [name, here, there] : differences(own, other))
      all += name + " " + here + " | " + there + "; ";
    return all;
  };
  CHECK(words(slow, slow).empty());
  CHECK(words(slow, fast) == "--lr 0.03 | 0.1; --seed not stated | 2; ");
  CHECK(words(fast, slow) == "--lr 0.1 | 0.03; --seed 2 | not stated; ");
  CHECK(words({}, slow) == "--lr not stated | 0.03; ");
}

TEST_CASE("the first difference names the setting, both values and both processes") {
  CHECK(between(sync, async) == "kvstore.type: dist_sync on 's1' and dist_async on 'w1'");
  CHECK(between(sync, sync) == "none");
  CHECK(between(sync, {sync[1], sync[0]}) == "none");
  CHECK(between(sync, {}) == "none");  // it has said nothing yet
  CHECK(between({}, sync) == "none");
  CHECK(between(sync, {sync[0]}) == "kvstore.update: server on 's1' and not stated on 'w1'");
  CHECK(between({sync[0]}, {{"other", "7"}, sync[0]}) == "other: not stated on 's1' and 7 on 'w1'");
}

TEST_CASE("the words of a peer are one line of bounded length") {
  const std::string shown = between(sync, {{"kvstore.type", "1\n2026-11-23 error \x1b[2J"}});
  CHECK(shown.find_first_of("\n\x1b") == std::string::npos);
  CHECK(between(sync, {{"kvstore.type", std::string(5000, 'x')}}).size() < 600);
}

TEST_CASE("a list of names is a value of bounded length that tells lists apart") {
  CHECK(setting_of({"s1", "s2"}) == "s1, s2");
  std::vector<std::string> many;
  for (int i = 0; i < 256; ++i) many.push_back("server-" + std::to_string(i));
  const std::string all = setting_of(many);
  CHECK(all.size() <= max_setting_value_bytes);
  std::swap(many[3], many[4]);
  CHECK(setting_of(many) != all);
}

}  // namespace dpwa
