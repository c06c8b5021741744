#include "dpwa/config/section.h"

#include <algorithm>

#include "dpwa/config/nearest_key.h"
#include "dpwa/config/text.h"

namespace dpwa::config {

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
        shown(root.Scalar()) + " is not a cluster file; accepted: a map with at least 'nodes'");
  }
}

void Section::add_map(const YAML::Node& map) {
  for (const auto& entry : map) {
    const YAML::Node& key = entry.first;
    const int line = key.Mark().line + 1;
    if (!key.IsScalar())
      locations_->fail_at(line, key_, "a key that is not text; accepted: plain keys");
    const std::string name = key.Scalar();
    if (has(name)) locations_->fail_at(line, path(name), "given twice; accepted: one value");
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
    std::string hint = suggestion(entry.name, known);
    for (std::size_t i = 0; i < elsewhere.size() && hint.empty(); ++i) {
      const std::string& leaf = elsewhere[i].substr(elsewhere[i].rfind('.') + 1);
      if (leaf == entry.name) hint = " did you mean '" + elsewhere[i] + "'?";
    }
    const std::string accepted = known.empty() ? "no keys" : joined(known);
    entry.field.fail("unknown key," + hint + " accepted: " + accepted);
  }
}

const Field* Section::find(const std::string& key) const {
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& entry) { return entry.name == key; });
  return found == entries_.end() ? nullptr : &found->field;
}

const Field& Section::need(const std::string& key, const std::string& accepted) const {
  const Field* field = find(key);
  if (!field) locations_->fail(path(key), "missing; accepted: " + accepted);
  return *field;
}

}  // namespace dpwa::config
