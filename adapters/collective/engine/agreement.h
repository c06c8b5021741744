#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "adapters/collective/engine/process_group.h"
#include "adapters/collective/engine/signature.h"

namespace dpwa::collective {

// Compares what all members are about to do, before they do it: one all-gather of 32 bytes each;
// only where they differ also of the texts. Throws CollectiveError (mismatch) on every member with
// the same sentence; the group lives on. All members call it, or none.
//
// `payload`: a number to exchange on the way. Returns those of all ranks; 0 for those that have
// joined, which takes them out of the comparison.
std::vector<std::int64_t> agree(const ProcessGroup& group, const Signature& mine,
                                std::int64_t payload = 0);

// What a member that has joined takes part in: the counterpart of the others' agree().
struct Announced {
  std::string text;                    // the signature of those at work; empty: all have joined
  std::vector<std::int64_t> payloads;  // 0 for those that have joined
  int last = 0;                        // once all have joined: the lowest rank of the last to do so
};

// `answered`: how often this member has called it since it joined. Throws as agree() does, where
// those at work do not agree.
Announced agree_as_joined(const ProcessGroup& group, std::int64_t answered);

// Throws CollectiveError (mismatch) where a payload is 0, which is that of a member that has
// joined: for operations that have no use for one. The payloads are those of rank `first` on.
void require_at_work(const ProcessGroup& group, const std::string& operation,
                     const std::vector<std::int64_t>& payloads, int first = 0);

}  // namespace dpwa::collective
