#pragma once

#include <yaml-cpp/yaml.h>

#include <cstdint>
#include <string>
#include <vector>

#include "dpwa/base/time.h"
#include "dpwa/config/locations.h"

namespace dpwa::config {

// One value of the file with its key path and line. Each reader returns the value in its type or
// throws ConfigError with what would be accepted.
class Field {
 public:
  Field(Locations& locations, std::string key, int line, YAML::Node node);

  const std::string& key() const { return key_; }
  int line() const { return line_; }  // from 1; 0 = none
  const YAML::Node& node() const { return node_; }
  bool is_scalar() const { return node_.IsScalar(); }
  // `null` or `~` written out, as opposed to no value at all.
  bool is_explicit_null() const { return node_.IsNull() && node_.Mark().line + 1 == line_; }
  Locations& locations() const { return *locations_; }

  // Text of a scalar as written, without its quotes.
  std::string text(const std::string& accepted = "text") const;
  // A name: letters, digits, '.', '_' and '-', not starting with '.', at most 64 bytes. Node and
  // cluster names become file names and travel in messages.
  std::string name() const;
  std::string choice(const std::vector<std::string>& accepted) const;
  bool boolean() const;
  // Finite and within the inclusive range; an infinite bound is no bound.
  double number(double minimum, double maximum) const;
  std::int64_t integer(std::int64_t minimum, std::int64_t maximum, const std::string& what) const;
  Duration positive_ms() const;      // above 0, at most 24 hours
  Duration non_negative_ms() const;  // 0 to 24 hours
  std::int64_t size_bytes(std::int64_t minimum, std::int64_t maximum,
                          const std::string& accepted) const;
  std::vector<Field> list(const std::string& accepted) const;

  [[noreturn]] void fail(const std::string& problem) const { locations_->fail(key_, problem); }
  // "'abc' is not WHAT; accepted: ACCEPTED", also for a list, a map or no value at all.
  [[noreturn]] void fail_type(const std::string& what, const std::string& accepted) const;

 private:
  Duration duration_ms(bool zero_allowed) const;
  [[noreturn]] void fail_range(const std::string& accepted) const;

  Locations* locations_;
  std::string key_;
  int line_;
  YAML::Node node_;
};

}  // namespace dpwa::config
