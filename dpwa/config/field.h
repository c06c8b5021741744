#pragma once

#include <yaml-cpp/yaml.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dpwa/base/time.h"
#include "dpwa/config/locations.h"

namespace dpwa::config {

inline constexpr Duration longest_duration = std::chrono::hours(24);

// One value of the file with its key path and line. Each reader returns the value in its type or
// throws ConfigError that names the accepted values.
class Field {
 public:
  Field(Locations& locations, std::string key, int line, YAML::Node node);

  const std::string& key() const { return key_; }
  int line() const { return line_; }  // from 1; 0 = none
  const YAML::Node& node() const { return node_; }
  bool is_scalar() const { return node_.IsScalar(); }
  // `null`, `Null`, `NULL` or `~`, as it is written out; empty: another value, or none at all.
  std::string written_null() const {
    const bool here = node_.IsNull() && node_.Mark().line + 1 == line_;
    return here ? locations_->null_at(node_.Mark().pos) : "";
  }
  Locations& locations() const { return *locations_; }

  // Text of a scalar as written, without its quotes.
  std::string text(const std::string& accepted = "text") const;
  // The same of a file: without control characters, which an escape may give ("\x7f"), but tabs.
  std::string path(const std::string& accepted) const;
  // A name: letters, digits, '.', '_' and '-', not starting with '.', at most 64 bytes. Node and
  // cluster names become file names and travel in messages.
  std::string name() const;
  std::string choice(const std::vector<std::string>& accepted) const;
  bool boolean() const;
  // Finite and within the inclusive range; an infinite bound is no bound.
  double number(double minimum, double maximum) const;
  std::int64_t integer(std::int64_t minimum, std::int64_t maximum, const std::string& what) const;
  Duration duration(bool zero_allowed) const;  // above 0, or from 0, to 24 hours
  std::int64_t size_bytes(std::int64_t minimum, std::int64_t maximum,
                          const std::string& accepted) const;
  std::vector<Field> list(const std::string& accepted) const;

  [[noreturn]] void fail(const std::string& problem) const { locations_->fail(key_, problem); }
  // "'abc' is not WHAT; accepted: ACCEPTED", also for a list, a map or no value at all.
  [[noreturn]] void fail_type(const std::string& what, const std::string& accepted) const;

 private:
  // What `parse` makes of the text, within the inclusive range. `what` and `accepted`: for an
  // error line.
  template <class Value>
  Value parsed(std::optional<Value> (*parse)(std::string_view), Value least, Value most,
               const std::string& what, const std::string& accepted) const;
  [[noreturn]] void fail_range(const std::string& accepted) const;

  Locations* locations_;
  std::string key_;
  int line_;
  YAML::Node node_;
};

// The keys of one map of the file, each at most once (yaml-cpp itself accepts duplicates silently).
class Section {
 public:
  // Throws ConfigError when the value is no map or gives a key twice.
  explicit Section(const Field& map, const std::string& accepted = "a map");
  // The document itself: a map, or the original's list of single-key maps, taken as one map.
  Section(Locations& locations, const YAML::Node& root);

  // Throws ConfigError for the first key that is not in `known`. It suggests those of `elsewhere`
  // (paths of keys in other places) that have this name, or else the nearest of `known`.
  void accept_only(const std::vector<std::string>& known,
                   const std::vector<std::string>& elsewhere = {}) const;
  const Field* find(const std::string& key) const;
  bool has(const std::string& key) const { return find(key) != nullptr; }
  // Throws ConfigError "missing; accepted: ..." when the key is absent.
  const Field& need(const std::string& key, const std::string& accepted) const;
  [[noreturn]] void fail(const std::string& problem) const { locations_->fail(key_, problem); }

 private:
  struct Entry {
    std::string name;
    Field field;
  };

  void add_map(const YAML::Node& map);
  std::string path(const std::string& name) const;

  Locations* locations_;
  std::string key_;                                          // empty = the document
  std::vector<Entry> entries_;                               // in the order of the file
  std::map<std::string, std::size_t, std::less<>> by_name_;  // their indices
};

}  // namespace dpwa::config
