#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "dpwa/members/group_messages.h"

namespace dpwa::members {

// The store at which the members of a group meet, without a server: each process keeps what it has
// put, and what the others have put and told it. Of each process only the entries of the last few
// groups: earlier ones have formed, or never will; and of all others so many bytes that those of
// any usual cluster fit. Pure. One owner, one thread.
class GroupEntries {
 public:
  static constexpr std::size_t kept_groups = 4;
  static constexpr std::size_t most_of_a_group = 64;
  static constexpr std::size_t most_bytes_of_a_group = 1 << 20;  // of keys and values
  static constexpr std::size_t most_bytes_of_others = 64 << 20;  // those that came first go

  // Of this process, which has to tell the others; a later value of a key replaces the former one.
  // False: the entry goes beyond the bounds.
  bool put(Entry entry);
  // Of the process that now has its name. An entry beyond the bounds is ignored.
  void receive(const ProcessId& from, Entry entry);

  // What this process or any other one has put, or of the others the one of this name alone; null:
  // nothing.
  const std::vector<std::uint8_t>* find(std::uint64_t group, const std::string& key,
                                        const std::string& writer = {}) const;
  // Whether that other process has put anything.
  bool has_come(std::uint64_t group, const std::string& name) const;
  // Whether any other one has.
  bool others_have_come(std::uint64_t group) const;
  // For a connection that has just been made, the oldest first.
  std::vector<Entry> own() const;

 private:
  struct OfGroup {
    std::uint64_t group = 0;
    std::map<std::string, std::vector<std::uint8_t>> values;
    std::size_t bytes = 0;
    std::uint64_t came = 0;  // in the order of all
  };
  using Groups = std::deque<OfGroup>;
  struct Sender {
    std::optional<ProcessId> id;
    Groups groups;
  };

  bool add(Groups& groups, Entry entry);
  void drop_beyond_bound();
  static const OfGroup* find_in(const Groups& groups, std::uint64_t group);

  Groups own_;
  std::map<std::string, Sender> others_;  // by name
  std::uint64_t groups_ = 0;              // that have come
};

}  // namespace dpwa::members
