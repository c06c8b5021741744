#pragma once

#include <optional>
#include <string>
#include <vector>

namespace dpwa::collective {

// The next operation of one member as text, to be compared with the others: the operation with its
// options, then one entry per tensor. Pure.
struct Signature {
  struct Entry {
    std::string name;      // of the tensor
    std::string form;      // element type and shape, such as "float32 [3, 4]"; "*": may differ
    bool setting = false;  // not a tensor but a setting, whose value `form` is
  };
  std::string operation;  // such as "allreduce average"
  std::vector<Entry> entries;
  std::string problem;  // a wrong argument of this member alone: every member fails with it

  // One line for the operation, one per entry, one for the problem. Line ends in names are spaces.
  std::string text() const;
  // The operation and the tensors of such a text.
  static Signature parse(const std::string& text);
};

// "2 ('w3')", where `names` has one for the rank; else "2".
std::string shown_rank(std::size_t rank, const std::vector<std::string>& names);

// The reason why the members' texts do not match, with the ranks and their texts. None if they
// match. `texts` and `names` are by rank; `names` may be empty.
std::optional<std::string> disagreement(const std::vector<std::string>& texts,
                                        const std::vector<std::string>& names = {});

// The reason why a group whose members use these GPUs cannot use NCCL: two ranks share one. None:
// each has its own. `gpus`: by rank, a text that is the same in all processes that use a GPU;
// `names`: of the ranks, may be empty. Pure.
std::optional<std::string> shared_gpu(const std::vector<std::string>& gpus,
                                      const std::vector<std::string>& names);

}  // namespace dpwa::collective
