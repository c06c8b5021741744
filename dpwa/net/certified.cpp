#include "dpwa/net/certified.h"

#include <algorithm>

#include "dpwa/base/plain_text.h"

namespace dpwa::net {

bool is_for(const std::optional<std::vector<std::string>>& names, const std::string& name) {
  return !names || std::ranges::find(*names, name) != names->end();
}

std::string words_for(const std::vector<std::string>& names) {
  constexpr std::size_t most_bytes = 200;
  std::string words;
  for (const std::string& name : names) words += (words.empty() ? "'" : ", '") + name + "'";
  return words.empty() ? "no name" : to_plain_text(words, most_bytes);
}

}  // namespace dpwa::net
