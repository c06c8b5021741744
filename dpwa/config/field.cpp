#include "dpwa/config/field.h"

#include <algorithm>
#include <cmath>

#include "dpwa/config/nearest_key.h"
#include "dpwa/config/text.h"
#include "dpwa/config/units.h"

namespace dpwa::config {
namespace {

constexpr Duration longest = std::chrono::hours(24);

bool is_name(const std::string& text) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  };
  return !text.empty() && text.size() <= 64 && text.front() != '.' && text.front() != '-' &&
         std::all_of(text.begin(), text.end(), allowed);
}

std::string range_text(double minimum, double maximum) {
  if (std::isfinite(minimum) && std::isfinite(maximum)) {
    return "a number from " + number_text(minimum) + " to " + number_text(maximum);
  }
  if (std::isfinite(minimum)) return "a number of at least " + number_text(minimum);
  if (std::isfinite(maximum)) return "a number of at most " + number_text(maximum);
  return "a finite number";
}

}  // namespace

Field::Field(Locations& locations, std::string key, int line, YAML::Node node)
    : locations_(&locations), key_(std::move(key)), line_(line), node_(std::move(node)) {
  locations_->place(key_, line);
}

void Field::fail_type(const std::string& what, const std::string& accepted) const {
  std::string problem = "no value";
  if (node_.IsScalar()) problem = shown(node_.Scalar()) + " is not " + what;
  if (node_.IsMap()) problem = "a map is not " + what;
  if (node_.IsSequence()) problem = "a list is not " + what;
  fail(problem + "; accepted: " + accepted);
}

void Field::fail_range(const std::string& accepted) const {
  fail(shown(node_.Scalar()) + " is out of range; accepted: " + accepted);
}

std::string Field::text(const std::string& accepted) const {
  if (!node_.IsScalar()) fail_type("text", accepted);
  return node_.Scalar();
}

std::string Field::name() const {
  const std::string accepted =
      "1 to 64 letters, digits, '.', '_' or '-', not starting with '.' or '-'";
  const std::string value = text(accepted);
  if (!is_name(value)) fail_type("a name", accepted);
  return value;
}

std::string Field::choice(const std::vector<std::string>& accepted) const {
  const std::string value = text(joined(accepted));
  if (std::find(accepted.begin(), accepted.end(), value) == accepted.end()) {
    fail(shown(value) + " is unknown," + suggestion(value, accepted) +
         " accepted: " + joined(accepted));
  }
  return value;
}

bool Field::boolean() const {
  bool value = false;
  if (!node_.IsScalar() || !YAML::convert<bool>::decode(node_, value)) {
    fail_type("true or false", "true, false");
  }
  return value;
}

double Field::number(double minimum, double maximum) const {
  const std::string accepted = range_text(minimum, maximum);
  const auto value = node_.IsScalar() ? parse_number(node_.Scalar()) : std::nullopt;
  if (!value) fail_type("a number", accepted);
  if (*value < minimum || *value > maximum) fail_range(accepted);
  return *value;
}

std::int64_t Field::integer(std::int64_t minimum, std::int64_t maximum,
                            const std::string& what) const {
  const std::string accepted =
      "a whole number from " + std::to_string(minimum) + " to " + std::to_string(maximum);
  const auto value = node_.IsScalar() ? parse_integer(node_.Scalar()) : std::nullopt;
  if (!value) fail_type(what, accepted);
  if (*value < minimum || *value > maximum) fail_range(accepted);
  return *value;
}

Duration Field::positive_ms() const {
  return duration_ms(false);
}
Duration Field::non_negative_ms() const {
  return duration_ms(true);
}

Duration Field::duration_ms(bool zero_allowed) const {
  const std::string accepted = std::string("a number of ms ") +
                               (zero_allowed ? "from 0" : "above 0") +
                               ", or with a unit (500ms, 2s)";
  const auto value = node_.IsScalar() ? parse_duration_ms(node_.Scalar()) : std::nullopt;
  if (!value) fail_type("a duration", accepted);
  if (*value < Duration::zero() || (!zero_allowed && *value == Duration::zero()))
    fail_range(accepted);
  if (*value > longest) fail_range("at most 24h");
  return *value;
}

std::int64_t Field::size_bytes(std::int64_t minimum, std::int64_t maximum,
                               const std::string& accepted) const {
  const auto value = node_.IsScalar() ? parse_size_bytes(node_.Scalar()) : std::nullopt;
  if (!value) fail_type("a size", accepted);
  if (*value < minimum || *value > maximum) fail_range(accepted);
  return *value;
}

std::vector<Field> Field::list(const std::string& accepted) const {
  if (!node_.IsSequence()) fail_type("a list", accepted);
  std::vector<Field> items;
  for (const YAML::Node& item : node_) {
    const std::string key = key_ + "[" + std::to_string(items.size()) + "]";
    items.emplace_back(*locations_, key, item.Mark().line + 1, item);
  }
  return items;
}

}  // namespace dpwa::config
