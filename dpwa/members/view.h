#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace dpwa::members {

// One process. The counter grows with every start under a name; the nonce, 64 random bits, tells
// two processes of the same counter apart. No clock decides.
struct ProcessId {
  std::string name;
  std::uint64_t counter = 0;
  std::uint64_t nonce = 0;
  auto operator<=>(const ProcessId&) const = default;

  // Whether this is a later process of the same name. Of two with one counter, the nonce decides.
  bool replaces(const ProcessId& other) const { return name == other.name && *this > other; }
};

// The operations of a group that one process has completed: the first `through`, and some beyond,
// because several are in flight. Operations count from 1 over the whole run.
struct Progress {
  std::uint64_t through = 0;
  std::set<std::uint64_t> beyond;
  bool operator==(const Progress&) const = default;

  bool has(std::uint64_t operation) const {
    return operation <= through || beyond.contains(operation);
  }
  bool covers(const Progress& other) const;
  // Returns false if it was there.
  bool add(std::uint64_t operation);
  void add(const Progress& other);
  void keep_common(const Progress& other);
};

// The view whose voters decide.
struct Base {
  std::uint64_t number = 0;
  std::uint64_t digest = 0;
  bool operator==(const Base&) const = default;
};

struct Member {
  ProcessId id;
  // It gets the state and the results of the others; it has no vote and contributes nothing.
  bool joining = false;
  bool serves = false;  // a server, for Quorum::with_servers
  Progress done{};      // when it promised to take part in this view; nothing while it is joining
  bool operator==(const Member&) const = default;
};

// Which members decide on the view after theirs.
enum class Quorum : std::uint8_t {
  // More than half, or exactly half with the first in order of seniority: dynamic linear voting
  // (Jajodia and Mutchler, ACM Transactions on Database Systems, 1990).
  majority,
  // Such a majority with a server among it, or all servers: however many workers die, the store
  // continues.
  with_servers,
};

// Those who step together. Views of a cluster form a chain: each is decided by a quorum of the
// processes of the view before (view_engine.h). A view without members is *open*: a run begins with
// a view of processes that an open view leads to.
struct View {
  std::uint64_t run = 0;     // random; of all views up to the next open one
  std::uint64_t number = 0;  // 0: the open view with which a cluster begins
  std::uint64_t before = 0;  // digest() of the view before
  Quorum quorum = Quorum::majority;
  std::uint64_t settings = 0;   // a digest of what all members have to agree on
  std::vector<Member> members;  // in order of seniority, those that are joining last
  bool operator==(const View&) const = default;

  bool open() const { return members.empty(); }
  const Member* member(const ProcessId& id) const;
  const Member* member(const std::string& name) const;
  bool votes(const ProcessId& id) const;
  std::vector<ProcessId> voters() const;
  // What at least one voter had completed when the view was made.
  Progress done() const;
  std::uint64_t digest() const;
  // Whether it can be a view at all: one process of a name, those that are joining last, one member
  // that votes, numbers with room for later ones.
  bool sound() const;
  bool follows(const Base& base) const {
    return number == base.number + 1 && before == base.digest && sound();
  }
};

// Whether these voters of `view`, which is not open, decide on the view after it. Any two such sets
// have a member in common.
bool is_quorum(const View& view, const std::set<ProcessId>& voters);

}  // namespace dpwa::members
