#include "dpwa/web/http.h"

#include <charconv>

namespace dpwa::web {
namespace {

// "%3C" to "<"; what is no such triple stays as it is.
std::string decoded(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned char byte = 0;
    const char* const digits = text.data() + i + 1;
    const bool escaped = text[i] == '%' && i + 2 < text.size() &&
                         std::from_chars(digits, digits + 2, byte, 16).ptr == digits + 2;
    result += escaped ? static_cast<char>(byte) : text[i];
    if (escaped) i += 2;
  }
  return result;
}

}  // namespace

std::string_view Request::path() const {
  return std::string_view(target).substr(0, target.find('?'));
}

std::string Request::parameter(std::string_view name) const {
  std::string_view rest = std::string_view(target).substr(path().size());
  while (!rest.empty()) {
    rest.remove_prefix(1);  // '?' or '&'
    const std::string_view pair = rest.substr(0, rest.find('&'));
    rest.remove_prefix(pair.size());
    const auto equals = pair.find('=');
    if (equals != pair.npos && pair.substr(0, equals) == name)
      return decoded(pair.substr(equals + 1));
  }
  return {};
}

Response error_response(unsigned status, const std::string& reason) {
  return {.status = status, .body = reason + '\n'};
}

}  // namespace dpwa::web
