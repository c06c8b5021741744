#include "dpwa/kvstore/run_record.h"

#include <algorithm>
#include <string_view>

#include "dpwa/base/plain_text.h"
#include "dpwa/base/random.h"

namespace dpwa::kvstore {
namespace {

constexpr std::size_t text_begin = 4;
constexpr std::size_t bytes_of_number = 6;
constexpr std::size_t max_text_bytes = (run_record_elements - text_begin) * bytes_of_number;
constexpr double text_number_end = 281474976710656.0;  // 2^48
constexpr char field_end = '\x1f';
constexpr char line_end = '\n';

std::string line_of(const char* kind, const std::string& first, const std::string& second) {
  std::string line = kind;
  for (const std::string& field : {first, second})
    line += field_end + to_plain_text(field, max_text_bytes);
  return line + line_end;
}

std::string text_of(const RunRecord& record) {
  std::string text;
  const auto append = [&text](const std::string& line) {
    if (text.size() + line.size() > max_text_bytes) return false;
    text += line;
    return true;
  };
  for (const auto& [name, value] : record.settings) append(line_of("s", name, value));
  for (const RunRecord::ModelKey& key : record.keys)
    if (!append(line_of("k", key.name, key.type))) break;
  return text;
}

double digest_of(const RunRecord& record) {
  std::string all;
  for (const RunRecord::ModelKey& key : record.keys) all += line_of("k", key.name, key.type);
  return static_cast<double>(hash_of(all) >> 12U);
}

std::uint64_t elements_of(const RunRecord& record) {
  std::uint64_t all = 0;
  for (const RunRecord::ModelKey& key : record.keys) all += key.elements;
  return all;
}

std::uint64_t whole(double value, double bound) {
  return value >= 0 && value < bound ? static_cast<std::uint64_t>(value) : 0;
}

std::string text_in(std::span<const double> values) {
  std::string text;
  for (const double value : values.subspan(text_begin)) {
    std::uint64_t bits = whole(value, text_number_end);
    for (std::size_t i = 0; i < bytes_of_number; ++i, bits >>= 8U)
      text += static_cast<char>(bits & 0xffU);
  }
  return text;
}

// Takes the next field off the line, without what is not safe to show.
std::string field(std::string_view& line) {
  const std::size_t end = std::min(line.find(field_end), line.size());
  const std::string text = to_plain_text(line.substr(0, end), max_text_bytes);
  line.remove_prefix(std::min(end + 1, line.size()));
  return text;
}

std::string size_words(std::uint64_t keys, std::uint64_t elements) {
  return std::to_string(keys) + (keys == 1 ? " key of " : " keys of ") + std::to_string(elements) +
         " elements";
}

// The first key that differs, in words; empty: it is not among those that the record names.
std::string first_other_key(const RunRecord& own, const RunOfOthers& run) {
  const std::size_t both = std::min(own.keys.size(), run.keys.size());
  for (std::size_t i = 0; i < both; ++i) {
    const RunRecord::ModelKey& mine = own.keys[i];
    const RunRecord::ModelKey& theirs = run.keys[i];
    if (mine.name == theirs.name && mine.type == theirs.type) continue;
    const std::string place = "key " + std::to_string(i + 1) + " is '" + mine.name + "' " +
                              mine.type + ", and that of the run ";
    return place + "'" + theirs.name + "' " + theirs.type;
  }
  if (own.keys.size() > both && run.key_count == both)
    return "the run has no key '" + own.keys[both].name + "'";
  if (run.keys.size() > both) return "it lacks the key '" + run.keys[both].name + "' of the run";
  return {};
}

}  // namespace

std::vector<double> encode(const RunRecord& record) {
  std::vector<double> values(run_record_elements);
  values[0] = record.clock;
  values[1] = static_cast<double>(record.keys.size());
  values[2] = static_cast<double>(elements_of(record));
  values[3] = digest_of(record);
  const std::string text = text_of(record);
  for (std::size_t i = 0; i < text.size(); i += bytes_of_number) {
    std::uint64_t bits = 0;
    for (std::size_t j = std::min(i + bytes_of_number, text.size()); j-- > i;)
      bits = bits << 8U | static_cast<unsigned char>(text[j]);
    values[text_begin + i / bytes_of_number] = static_cast<double>(bits);
  }
  return values;
}

RunOfOthers decode_run(std::span<const double> values) {
  constexpr double exact = 9007199254740992.0;  // whole numbers below are exact in float64
  RunOfOthers run;
  if (values.size() != run_record_elements) return run;
  run.clock = values[0];
  run.key_count = whole(values[1], exact);
  run.elements = whole(values[2], exact);
  run.digest = values[3];
  const std::string text = text_in(values);
  std::string_view rest = text;
  while (true) {
    const std::size_t end = rest.find(line_end);
    if (end == std::string_view::npos) return run;
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end + 1);
    const std::string kind = field(line);
    std::string first = field(line);
    std::string second = field(line);
    if (kind == "s") run.settings.emplace_back(std::move(first), std::move(second));
    if (kind == "k") run.keys.push_back({std::move(first), std::move(second), 0});
  }
}

std::optional<std::string> other_model(const RunRecord& own, const RunOfOthers& run) {
  if (run.digest == digest_of(own) && run.key_count == own.keys.size()) return std::nullopt;
  const std::string which = first_other_key(own, run);
  return "another model than the run: " + (which.empty() ? "" : which + "; ") +
         size_words(own.keys.size(), elements_of(own)) + " here, " +
         size_words(run.key_count, run.elements) + " in the run";
}

}  // namespace dpwa::kvstore
