#pragma once

#include <optional>
#include <string>
#include <vector>

#include "dpwa/config/field.h"

namespace dpwa::config {

// The keys of one map of the file, each at most once (yaml-cpp itself accepts duplicates silently).
class Section {
 public:
  // Throws ConfigError when the value is no map or gives a key twice.
  explicit Section(const Field& map, const std::string& accepted = "a map");
  // The document itself: a map, or the original's list of single-key maps, taken as one map.
  Section(Locations& locations, const YAML::Node& root);

  // Throws ConfigError for the first key that is not in `known`, suggesting the nearest of `known`
  // and of `elsewhere` (keys that exist in another place).
  void accept_only(const std::vector<std::string>& known,
                   const std::vector<std::string>& elsewhere = {}) const;
  const Field* find(const std::string& key) const;
  bool has(const std::string& key) const { return find(key) != nullptr; }
  // Throws ConfigError "missing; accepted: ..." when the key is absent.
  const Field& need(const std::string& key, const std::string& accepted) const;

 private:
  struct Entry {
    std::string name;
    Field field;
  };

  void add_map(const YAML::Node& map);
  std::string path(const std::string& name) const;

  Locations* locations_;
  std::string key_;  // empty = the document
  std::vector<Entry> entries_;
};

}  // namespace dpwa::config
