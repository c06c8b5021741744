#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "dpwa/base/invariant.h"

namespace dpwa::test {

// Thrown by an invariant that does not hold, in place of the end of the process. No std::exception:
// nothing takes it for a failure that is expected.
struct BrokenInvariant {
  std::string line;
};

// While it lives, broken invariants throw BrokenInvariant. In the whole process: one at a time.
class CatchBrokenInvariants {
 public:
  CatchBrokenInvariants() {
    handle_broken_invariants(
        [](std::string_view line) { throw BrokenInvariant{std::string(line)}; });
  }
  ~CatchBrokenInvariants() { handle_broken_invariants(nullptr); }
  CatchBrokenInvariants(const CatchBrokenInvariants&) = delete;
  CatchBrokenInvariants& operator=(const CatchBrokenInvariants&) = delete;
};

// The line of the invariant that `body` breaks; empty: it breaks none.
template <typename Body>
std::string line_of_broken(Body&& body) {
  const CatchBrokenInvariants guard;
  try {
    std::forward<Body>(body)();
  } catch (const BrokenInvariant& broken) {
    return broken.line;
  }
  return {};
}

// Whether `body` breaks the invariant with these words.
template <typename Body>
bool breaks(std::string_view words, Body&& body) {
  return line_of_broken(std::forward<Body>(body)).find(": " + std::string(words) + ": ") !=
         std::string::npos;
}

}  // namespace dpwa::test
