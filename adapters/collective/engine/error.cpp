#include "adapters/collective/engine/error.h"

#include <c10/util/Exception.h>

namespace dpwa::collective {

namespace {

Failure kind_of(const std::string& message) {
  for (const char* word : {"Timed out", "timed out", "timeout after", "Wait timeout"}) {
    if (message.find(word) != std::string::npos) return Failure::timeout;
  }
  return Failure::lost;
}

}  // namespace

std::string plain_reason(const std::string& message) {
  std::string text = message.substr(0, message.find('\n'));
  if (text.starts_with("[/")) {  // [file:line] of the engine's build
    const auto end = text.find("] ");
    if (end != std::string::npos) text.erase(0, end + 2);
  }
  const auto advice = text.find(" This is typically caused");
  if (advice != std::string::npos) text.erase(advice);
  while (!text.empty() && (text.back() == '.' || text.back() == ' ')) text.pop_back();
  return text.empty() ? "failed without a reason" : text;
}

CollectiveError translate(const std::exception_ptr& thrown, const std::string& operation,
                          const std::string& engine) {
  try {
    std::rethrow_exception(thrown);
  } catch (const CollectiveError& error) {
    return error;
  } catch (const c10::Error& error) {
    const std::string message = error.what_without_backtrace();
    return {kind_of(message), operation, engine, plain_reason(message)};
  } catch (const std::exception& error) {
    return {kind_of(error.what()), operation, engine, plain_reason(error.what())};
  }
}

}  // namespace dpwa::collective
