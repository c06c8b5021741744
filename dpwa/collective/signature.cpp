#include "dpwa/collective/signature.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace dpwa::collective {

namespace {

constexpr const char* problem_mark = "! ";
constexpr std::string_view setting_mark = "= ";

std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t from = 0; from < text.size();) {
    const auto end = std::min(text.find('\n', from), text.size());
    lines.push_back(text.substr(from, end - from));
    from = end + 1;
  }
  return lines;
}

// "ranks 0, 2: float32 [3]; rank 1: float32 [4]", in the order of the first rank of each.
std::string by_rank(const std::vector<std::string>& values, const std::vector<std::string>& names) {
  std::vector<std::pair<std::string, std::string>> groups;  // value, ranks
  for (std::size_t rank = 0; rank < values.size(); ++rank) {
    const auto same = std::find_if(groups.begin(), groups.end(),
                                   [&](const auto& group) { return group.first == values[rank]; });
    if (same == groups.end()) {
      groups.emplace_back(values[rank], shown_rank(rank, names));
    } else {
      same->second += ", " + shown_rank(rank, names);
    }
  }
  std::string text;
  for (const auto& [value, ranks] : groups) {
    const bool several = ranks.find(',') != std::string::npos;
    text += (text.empty() ? "rank" : "; rank") + std::string(several ? "s " : " ") + ranks + ": " +
            (value.empty() ? "nothing" : value);
  }
  return text;
}

}  // namespace

std::string shown_rank(std::size_t rank, const std::vector<std::string>& names) {
  const std::string number = std::to_string(rank);
  return rank < names.size() ? number + " ('" + names[rank] + "')" : number;
}

std::string Signature::text() const {
  std::string text = one_line(operation) + '\n';
  for (const auto& entry : entries) {
    if (entry.setting) text += setting_mark;
    text += '\'' + one_line(entry.name) + "' " + entry.form + '\n';
  }
  if (!problem.empty()) text += problem_mark + one_line(problem) + '\n';
  return text;
}

Signature Signature::parse(const std::string& text) {
  Signature signature;
  bool first = true;
  for (const std::string& line : lines_of(text)) {
    const auto end_of_name = line.rfind("' ");
    if (std::exchange(first, false)) {
      signature.operation = line;
    } else if (line.starts_with('\'') && end_of_name != std::string::npos) {
      signature.entries.push_back({line.substr(1, end_of_name - 1), line.substr(end_of_name + 2)});
    }
  }
  return signature;
}

std::optional<std::string> disagreement(const std::vector<std::string>& texts,
                                        const std::vector<std::string>& names) {
  std::vector<std::vector<std::string>> lines;
  std::size_t longest = 0;
  for (const auto& text : texts) {
    lines.push_back(lines_of(text));
    longest = std::max(longest, lines.back().size());
  }
  for (std::size_t rank = 0; rank < lines.size(); ++rank) {
    for (const auto& line : lines[rank]) {
      if (line.starts_with(problem_mark)) {
        return "rank " + shown_rank(rank, names) + ": " +
               line.substr(std::string(problem_mark).size());
      }
    }
  }
  for (std::size_t k = 0; k < longest; ++k) {
    std::vector<std::string> values;
    for (const auto& of_rank : lines) values.push_back(k < of_rank.size() ? of_rank[k] : "");
    const bool differ = std::any_of(values.begin(), values.end(),
                                    [&](const auto& value) { return value != values.front(); });
    if (!differ) continue;
    const auto is_setting = [](const std::string& value) {
      return value.starts_with(setting_mark);
    };
    if (std::ranges::none_of(values, is_setting))
      return "the ranks do not make the same call: " + by_rank(values, names);
    for (std::string& value : values)  // a tensor: this rank has one setting less
      value = is_setting(value) ? value.substr(setting_mark.size()) : "";
    return "the ranks differ in a setting: " + by_rank(values, names);
  }
  return std::nullopt;
}

std::optional<std::string> shared_gpu(const std::vector<std::string>& gpus,
                                      const std::vector<std::string>& names) {
  for (auto second = gpus.begin(); second != gpus.end(); ++second) {
    const auto first = std::find(gpus.begin(), second, *second);
    if (first == second) continue;
    const auto shown = [&](auto place) {
      return shown_rank(static_cast<std::size_t>(place - gpus.begin()), names);
    };
    return "ranks " + shown(first) + " and " + shown(second) +
           " use the same GPU; accepted: a GPU for each rank, or engine gloo";
  }
  return std::nullopt;
}

}  // namespace dpwa::collective
