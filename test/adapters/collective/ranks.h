#pragma once

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "adapters/collective/engine/operations.h"

namespace dpwa::test {

// One member of a group that lives in this process.
struct Rank {
  std::unique_ptr<collective::ProcessGroup> group;
  collective::Operations operations;
  explicit Rank(std::unique_ptr<collective::ProcessGroup> formed)
      : group(std::move(formed)), operations(*group) {}
};

// Forms a group of `size` ranks, each on a thread of its own, and runs body(rank) on each.
// `adjust`: changes a rank's options before it comes. Rethrows the first failure.
void with_ranks(int size, const std::function<void(Rank&)>& body,
                const std::function<void(collective::GroupOptions&)>& adjust = {});

// The CollectiveError that `call` throws; fails the test where it throws none.
inline collective::CollectiveError error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const collective::CollectiveError& error) {
    return error;
  }
  throw std::logic_error("no CollectiveError was thrown");
}

}  // namespace dpwa::test
