#include "dpwa/config/field.h"

#include <algorithm>
#include <cmath>

#include "dpwa/base/numbers.h"
#include "dpwa/base/plain_text.h"
#include "dpwa/config/text.h"

namespace dpwa::config {
namespace {

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

// " did you mean 'a.name' or 'b.name'?", of those paths that end in this name, and the key `near`,
// if it only ends otherwise; or nothing.
std::string places_of(const std::string& name, const std::vector<std::string>& paths,
                      const std::string& near) {
  std::string places;
  for (const std::string& path : paths) {
    const std::size_t dot = path.rfind('.');
    if (path.substr(dot + 1) != name) continue;
    places += (places.empty() ? "'" : " or '") + path + "'";
    if (dot == std::string::npos) places += " at the top level";
  }
  if (!places.empty() && !near.empty() && (near.starts_with(name) || name.starts_with(near)))
    places += " or '" + near + "'";
  return places.empty() ? "" : " did you mean " + places + "?";
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

std::string Field::path(const std::string& accepted) const {
  std::string path = text(accepted);
  if (has_control(path)) fail_type("a path without control characters", accepted);
  return path;
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
    fail(unknown_word(value, accepted));
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

template <class Value>
Value Field::parsed(std::optional<Value> (*parse)(std::string_view), Value least, Value most,
                    const std::string& what, const std::string& accepted) const {
  const auto value = node_.IsScalar() ? parse(node_.Scalar()) : std::nullopt;
  if (!value) fail_type(what, accepted);
  if (*value < least || *value > most) fail_range(accepted);
  return *value;
}

double Field::number(double minimum, double maximum) const {
  return parsed(parse_number, minimum, maximum, "a number", range_text(minimum, maximum));
}

std::int64_t Field::integer(std::int64_t minimum, std::int64_t maximum,
                            const std::string& what) const {
  return parsed(
      number_in<std::int64_t>, minimum, maximum, what,
      "a whole number from " + std::to_string(minimum) + " to " + std::to_string(maximum));
}

Duration Field::duration(bool zero_allowed) const {
  const Duration value =
      parsed(parse_duration_ms, Duration(zero_allowed ? 0 : 1), Duration::max(), "a duration",
             std::string("a number of ms ") + (zero_allowed ? "from 0" : "above 0") +
                 ", or with a unit (500ms, 2s)");
  if (value > longest_duration) fail_range("at most 24h");
  return value;
}

std::int64_t Field::size_bytes(std::int64_t minimum, std::int64_t maximum,
                               const std::string& accepted) const {
  return parsed(parse_size_bytes, minimum, maximum, "a size", accepted);
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

Section::Section(const Field& map, const std::string& accepted)
    : locations_(&map.locations()), key_(map.key()) {
  if (!map.node().IsMap()) map.fail_type("a map", accepted);
  add_map(map.node());
}

Section::Section(Locations& locations, const YAML::Node& root) : locations_(&locations) {
  if (root.IsMap()) {
    add_map(root);
  } else if (root.IsSequence()) {
    for (const YAML::Node& item : root) {
      if (!item.IsMap() || item.size() != 1) {
        locations.fail_at(item.Mark().line + 1, "",
                          "not a map of one key; accepted in the list form: entries such as "
                          "'- timeout_ms: 500'");
      }
      add_map(item);
    }
  } else {
    locations.fail_at(
        root.Mark().line + 1, "",
        shown(root.Scalar()) +
            " is not a cluster file; accepted: a map of settings, such as 'nodes' and 'backend'");
  }
}

void Section::add_map(const YAML::Node& map) {
  for (const auto& entry : map) {
    const YAML::Node& key = entry.first;
    const int line = key.Mark().line + 1;
    if (!key.IsScalar())
      locations_->fail_at(line, key_, "a key that is not text; accepted: plain keys");
    const std::string name = key.Scalar();
    if (!by_name_.try_emplace(name, entries_.size()).second)
      locations_->fail_at(line, path(name), "given twice; accepted: one value");
    entries_.push_back({name, Field(*locations_, path(name), line, entry.second)});
  }
}

std::string Section::path(const std::string& name) const {
  return (key_.empty() ? "" : key_ + ".") + (name.size() <= 60 ? one_line(name) : shown(name));
}

void Section::accept_only(const std::vector<std::string>& known,
                          const std::vector<std::string>& elsewhere) const {
  for (const Entry& entry : entries_) {
    if (std::find(known.begin(), known.end(), entry.name) != known.end()) continue;
    const std::size_t dot = entry.name.find('.');
    const std::string section = entry.name.substr(0, dot);
    if (dot != std::string::npos && std::find(known.begin(), known.end(), section) != known.end())
      entry.field.fail("one name; accepted: '" + section + ":', and below it '" +
                       one_line(entry.name.substr(dot + 1)) + ": ...'");
    std::string hint = places_of(entry.name, elsewhere, nearest_key(entry.name, known));
    if (hint.empty()) hint = suggestion(entry.name, known);
    const std::string accepted = known.empty() ? "no keys" : joined(known);
    entry.field.fail("unknown key," + hint + " accepted: " + accepted);
  }
}

const Field* Section::find(const std::string& key) const {
  const auto found = by_name_.find(key);
  return found == by_name_.end() ? nullptr : &entries_[found->second].field;
}

const Field& Section::need(const std::string& key, const std::string& accepted) const {
  const Field* field = find(key);
  if (!field) locations_->fail(path(key), "missing; accepted: " + accepted);
  return *field;
}

}  // namespace dpwa::config
