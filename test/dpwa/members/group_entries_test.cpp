#include "dpwa/members/group_entries.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace dpwa::members {
namespace {

using Bytes = std::vector<std::uint8_t>;

const ProcessId first{"b", 1, 11};
const ProcessId restarted{"b", 2, 12};

Bytes value_of(const GroupEntries& entries, std::uint64_t group, const std::string& key) {
  const Bytes* const found = entries.find(group, key);
  return found == nullptr ? Bytes{} : *found;
}

}  // namespace

TEST_CASE("an entry is found under its group and key, whoever of the group has put it") {
  GroupEntries entries;
  CHECK(entries.put({7, "a", {1}}));
  CHECK_FALSE(entries.others_have_come(7));
  entries.receive(first, {7, "b", {2, 0}});
  CHECK(value_of(entries, 7, "a") == Bytes{1});
  CHECK(value_of(entries, 7, "b") == Bytes{2, 0});
  CHECK(entries.find(7, "c") == nullptr);
  CHECK(entries.find(8, "a") == nullptr);
  CHECK(entries.has_come(7, "b"));
  CHECK_FALSE(entries.has_come(8, "b"));
  CHECK_FALSE(entries.has_come(7, "c"));
  CHECK(entries.others_have_come(7));
}

TEST_CASE("the last value of a key counts, and an own entry before that of another process") {
  GroupEntries entries;
  entries.receive(first, {7, "a", {1}});
  entries.receive(first, {7, "a", {2}});
  CHECK(value_of(entries, 7, "a") == Bytes{2});
  entries.put({7, "a", {3}});
  CHECK(value_of(entries, 7, "a") == Bytes{3});
}

TEST_CASE("an entry that one process alone may write is not taken from another") {
  GroupEntries entries;
  entries.receive({"a", 1, 1}, {7, "of b", {1}});
  CHECK(entries.find(7, "of b", "b") == nullptr);
  entries.receive(first, {7, "of b", {2}});
  CHECK(*entries.find(7, "of b", "b") == Bytes{2});
  CHECK(*entries.find(7, "of b", "a") == Bytes{1});
}

TEST_CASE("of all other processes only so many bytes are kept, of those that came last") {
  GroupEntries entries;
  constexpr std::size_t of_each = GroupEntries::most_bytes_of_a_group / max_entry_bytes - 1;
  constexpr std::size_t most = GroupEntries::most_bytes_of_others / (of_each * max_entry_bytes);
  const auto name = [](std::size_t i) { return "n" + std::to_string(i); };
  for (std::size_t i = 0; i <= most; ++i) {
    for (std::size_t key = 0; key < of_each; ++key)
      entries.receive({name(i), 1, 1}, {7, std::to_string(key), Bytes(max_entry_bytes)});
  }
  CHECK_FALSE(entries.has_come(7, name(0)));
  CHECK(entries.has_come(7, name(1)));
  CHECK(entries.has_come(7, name(most)));
}

TEST_CASE("what a process has put goes when another one takes its name") {
  GroupEntries entries;
  entries.receive(first, {7, "a", {1}});
  entries.receive(restarted, {9, "a", {2}});
  CHECK(entries.find(7, "a") == nullptr);
  CHECK(value_of(entries, 9, "a") == Bytes{2});
}

TEST_CASE("only the entries of the last groups of each process are kept") {
  GroupEntries entries;
  entries.receive(first, {1, "b", {1}});
  const std::uint64_t last = GroupEntries::kept_groups + 1;
  for (std::uint64_t group = 1; group <= last; ++group) CHECK(entries.put({group, "a", {2}}));
  CHECK(entries.find(1, "a") == nullptr);
  CHECK(entries.find(1, "b") != nullptr);
  CHECK(entries.find(2, "a") != nullptr);
  const std::vector<Entry> own = entries.own();
  REQUIRE(own.size() == GroupEntries::kept_groups);
  CHECK(own.front() == Entry{2, "a", {2}});
  CHECK(own.back() == Entry{last, "a", {2}});
}

TEST_CASE("too many entries, and too large ones, are refused, and the others stay") {
  GroupEntries entries;
  CHECK_FALSE(entries.put({7, "", {1}}));
  CHECK_FALSE(entries.put({7, "two\nlines", {1}}));
  CHECK_FALSE(entries.put({7, std::string(max_entry_key_bytes + 1, 'k'), {1}}));
  CHECK_FALSE(entries.put({7, "a", Bytes(max_entry_bytes + 1)}));
  CHECK(entries.own().empty());

  for (std::size_t i = 0; i < GroupEntries::most_of_a_group; ++i)
    CHECK(entries.put({7, "key " + std::to_string(i), {1}}));
  CHECK_FALSE(entries.put({7, "one more", {1}}));
  CHECK(entries.put({7, "key 0", {2}}));
  CHECK(value_of(entries, 7, "key 0") == Bytes{2});

  for (const char* key : {"a", "b", "c"}) CHECK(entries.put({8, key, Bytes(max_entry_bytes)}));
  CHECK_FALSE(entries.put({8, "d", Bytes(max_entry_bytes)}));
  CHECK(entries.put({8, "a", Bytes(max_entry_bytes, 9)}));
  CHECK(value_of(entries, 8, "a").front() == 9);
}

}  // namespace dpwa::members
