#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "dpwa/collective/error.h"
#include "dpwa/collective/signature.h"
#include "dpwa/collective/step_group.h"

namespace dpwa::collective {

// Compares the next operation of all members before it begins: one all-gather of 32 bytes each, and
// one of the texts if these differ. Throws CollectiveError (mismatch) on every member with the same
// sentence; the group can continue. All members call it, or none.
//
// `payload`: a number that is exchanged as well. Returns the payloads of all ranks; 0 for members
// that have joined, which are not compared.
std::vector<std::int64_t> agree(const StepGroup& group, const Signature& mine,
                                std::int64_t payload = 0);

// The operation in which a joined member takes part: the counterpart of the others' agree().
struct Announced {
  std::string text;                    // the signature of those at work; empty: all have joined
  std::vector<std::int64_t> payloads;  // 0 for those that have joined
  int last = 0;                        // once all have joined: the lowest rank of the last to do so
};

// `answered`: how often this member has called it since it joined. Throws as agree() does if the
// members at work do not agree.
Announced agree_as_joined(const StepGroup& group, std::int64_t answered);

// Throws CollectiveError (mismatch) if a payload is 0, which means that the member has joined. For
// operations in which joined members cannot take part. The payloads are those of rank `first` on.
void require_at_work(const StepGroup& group, const std::string& operation,
                     const std::vector<std::int64_t>& payloads, int first = 0);

// The bytes of all members, which may be of any number, in the order of ranks. `name`: as in
// Signature::Entry. Throws CollectiveError.
std::vector<std::byte> allgather(const StepGroup& group, const std::string& name,
                                 std::span<const std::byte> own);
// Returns once all members have called it. Throws CollectiveError.
void barrier(const StepGroup& group);

// Fills `data`, bytes in host memory, with that of `root`, once the members have agreed on it.
// `name`, `form`: as in Signature::Entry. Throws CollectiveError.
void broadcast(const StepGroup& group, const std::string& name, const std::string& form,
               std::span<std::byte> data, int root);

}  // namespace dpwa::collective
