#include "dpwa/base/invariant.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "dpwa/base/thread_failure.h"

namespace dpwa {
namespace {

std::atomic<void (*)(std::string_view)> handler = nullptr;

// The path from the root of the repository: compilers are given absolute ones.
std::string_view within_repository(std::string_view file) {
  std::size_t from = 0;
  for (const std::string_view root : {"/dpwa/", "/adapters/", "/interpolation/"}) {
    const std::size_t found = file.rfind(root);
    if (found != std::string_view::npos) from = std::max(from, found + 1);
  }
  return file.substr(from);
}

// Takes the next name off: up to a comma outside of brackets.
std::string_view take_name(std::string_view& names) {
  std::size_t depth = 0;
  std::size_t end = 0;
  for (; end < names.size(); ++end) {
    const char each = names[end];
    if (each == ',' && depth == 0) break;
    if (each == '(' || each == '[' || each == '{') ++depth;
    if (each == ')' || each == ']' || each == '}') --depth;
  }
  const std::string_view name = names.substr(0, end);
  names.remove_prefix(std::min(names.size(), end + 1));
  names.remove_prefix(std::min(names.size(), names.find_first_not_of(' ')));
  return name;
}

}  // namespace

// The words of a value, without memory.
class InvariantWords {
 public:
  InvariantWords(LastLine& line, const InvariantValue& value) {
    using Kind = InvariantValue::Kind;
    std::array<char, 32> number{};
    switch (value.kind_) {
      case Kind::natural:
        std::snprintf(number.data(), number.size(), "%llu",
                      static_cast<unsigned long long>(value.natural_));
        break;
      case Kind::negative:
        std::snprintf(number.data(), number.size(), "%lld", static_cast<long long>(value.natural_));
        break;
      case Kind::real:
        std::snprintf(number.data(), number.size(), "%.17g", value.real_);
        break;
      case Kind::text:
        line.add("'").add(value.text_).add("'");
        return;
    }
    line.add(number.data());
  }
};

void end_for_broken_invariant(const InvariantPlace& place,
                              std::initializer_list<InvariantValue> values) {
  std::array<char, 16> number{};
  std::snprintf(number.data(), number.size(), ":%d", place.line);
  LastLine line;
  line.add("broken invariant at ").add(within_repository(place.file)).add(number.data()).add_node();
  line.add(": ").add(place.broken).add(": ").add(place.condition);
  std::string_view names = place.names;
  const char* separator = "; ";
  for (const InvariantValue& value : values) {
    line.add(std::exchange(separator, ", ")).add(take_name(names)).add(" = ");
    InvariantWords(line, value);
  }
  if (const auto handle = handler.load()) handle(line.without_newline());
#ifdef DPWA_INVARIANT_ABORTS
  write_last_line(line.text());
  std::abort();
#else
  end_process(line.text(), broken_invariant_exit_code);
#endif
}

void handle_broken_invariants(void (*handle)(std::string_view line)) {
  handler = handle;
}

}  // namespace dpwa
