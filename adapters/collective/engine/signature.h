#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dpwa::collective {

// What one member is about to do, as text, for comparison with the others: the operation with its
// options, then one entry per tensor. Pure.
struct Signature {
  struct Entry {
    std::string name;  // of the tensor
    std::string form;  // element type and shape, such as "float32 [3, 4]"; "*": may differ
  };
  std::string operation;  // such as "allreduce average"
  std::vector<Entry> entries;
  std::string problem;  // an argument that only this member has wrong: every member fails of it

  // One line for the operation, one per entry, one for the problem. Line ends in names are spaces.
  std::string text() const;
};

// 64 bits of a text: members of equal hash are taken to agree.
std::uint64_t hash_of(const std::string& text);

// "2 ('w3')", where `names` has one for the rank; else "2".
std::string shown_rank(std::size_t rank, const std::vector<std::string>& names);

// Why the members' texts, by rank, do not fit together: names the ranks and what each has. None
// where they do. `names`: of the members by rank; may be empty.
std::optional<std::string> disagreement(const std::vector<std::string>& texts,
                                        const std::vector<std::string>& names = {});

}  // namespace dpwa::collective
