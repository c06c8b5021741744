#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>

// DPWA_INVARIANT(condition, "what is broken", values...): a property that this program alone
// guarantees, whatever bytes come from peers, files and users. One that does not hold is a defect:
// what follows would send or store wrong values. So the process ends, in release builds too, with
// exit code 70, without destructors, and with one last line on stderr and in the log, such as
//
//   broken invariant at dpwa/snapshot/snapshot_store.cpp:84 on node 'w1': versions are published in
//   ascending order: version > latest; version = 3, latest = 3
//
// Costs one branch. Builds of fuzzers and sanitizers abort, so that the input is kept. `condition`
// has no side effects; commas outside of parentheses are not accepted in it.
#define DPWA_INVARIANT(condition, broken, ...)                                                 \
  do {                                                                                         \
    if (!(condition)) [[unlikely]]                                                             \
      ::dpwa::end_for_broken_invariant({__FILE__, __LINE__, broken, #condition, #__VA_ARGS__}, \
                                       {__VA_ARGS__});                                         \
  } while (false)

namespace dpwa {

inline constexpr int broken_invariant_exit_code = 70;

struct InvariantPlace {
  const char* file;
  int line;
  const char* broken;     // in plain words
  const char* condition;  // in the words of the source, as the names of the values
  const char* names;
};

// A value of the last line. Views a text.
class InvariantValue {
 public:
  template <class Value>
    requires std::is_arithmetic_v<Value> || std::is_enum_v<Value>
  InvariantValue(Value value) {  // NOLINT: as an argument of the macro
    if constexpr (std::is_enum_v<Value>) {
      *this = InvariantValue(static_cast<std::underlying_type_t<Value>>(value));
    } else if constexpr (std::is_floating_point_v<Value>) {
      kind_ = Kind::real;
      real_ = static_cast<double>(value);
    } else {
      if constexpr (std::is_signed_v<Value>) kind_ = value < 0 ? Kind::negative : Kind::natural;
      natural_ = static_cast<std::uint64_t>(value);
    }
  }
  InvariantValue(std::string_view text) : kind_(Kind::text), text_(text) {}    // NOLINT
  InvariantValue(const std::string& text) : kind_(Kind::text), text_(text) {}  // NOLINT

 private:
  friend class InvariantWords;
  enum class Kind : std::uint8_t { natural, negative, real, text };
  Kind kind_ = Kind::natural;
  std::uint64_t natural_ = 0;  // of a negative number its two's complement
  double real_ = 0;
  std::string_view text_;
};

[[noreturn, gnu::cold, gnu::noinline]] void end_for_broken_invariant(
    const InvariantPlace& place, std::initializer_list<InvariantValue> values);

// For tests: called with the line, without its newline, instead of ending the process; it throws.
// Null: the process ends.
void handle_broken_invariants(void (*handler)(std::string_view line));

// For tests: a class whose invariants nothing outside can break befriends its specialisation, which
// breaks them (test/support/broken_invariant.h).
template <class Of>
struct InvariantTest;

}  // namespace dpwa
