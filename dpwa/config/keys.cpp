#include "dpwa/config/keys.h"

#include <algorithm>
#include <stdexcept>

#include "dpwa/config/field.h"
#include "dpwa/config/text.h"
#include "interpolation/registry.h"

namespace dpwa::config {
namespace {

std::string parent_of(const KeySection& section) {
  const std::size_t dot = section.path.rfind('.');
  return dot == std::string::npos ? "" : section.path.substr(0, dot);
}

void read_key(const Key& key, const Section& section, Config& config) {
  const Field* field = section.find(key.name);
  const Field* alias = key.alias.empty() ? nullptr : section.find(key.alias);
  if (field && alias) {
    alias->fail("the same as '" + key.name + "', which is given too; accepted: one of them");
  }
  if (field) key.read(*field, config);
  if (alias) key.read(*alias, config);
}

// The keys that a section accepts depend on the method.
void read_interpolation(const KeySection& table, const Section& section, Config& config) {
  InterpolationConfig& interpolation = config.interpolation;
  read_key(key_at("interpolation.method"), section, config);
  interpolation.parameters = read_parameters(interpolation.method, section, accepted_names(table));
  read_key(key_at("interpolation.divergence_threshold"), section, config);
}

// A mode requires its own files and accepts no others.
void read_security(const KeySection& table, const Section& section, Config& config) {
  section.accept_only(accepted_names(table), key_paths());
  const Key& mode = key_at("security.mode");
  mode.read(section.need(mode.name, plain_accepted(mode)), config);
  const std::string& chosen = config.security.mode;
  std::vector<std::string> own;
  for (const Key& key : table.keys) {
    if (key.mode == chosen) own.push_back(key.name);
  }
  for (const Key& key : table.keys) {
    if (key.mode == chosen) {
      key.read(section.need(key.name, "the path of a file"), config);
    } else if (const Field* field = section.find(key.name); field && !key.mode.empty()) {
      field->fail("no setting of mode " + chosen +
                  (own.empty() ? "" : "; accepted: " + joined(own)));
    }
  }
}

void read_section(const KeySection& table, const Section& section, Config& config) {
  if (table.path == "interpolation") {
    read_interpolation(table, section, config);
  } else if (table.path == "security") {
    read_security(table, section, config);
  } else {
    section.accept_only(accepted_names(table), key_paths());
    for (const Key& key : table.keys) read_key(key, section, config);
  }
  if (!table.required.empty())
    section.need(table.required, key_at(table.path + "." + table.required).accepted +
                                     ", or no section " + table.path);
}

void read_sections_in(const KeySection& table, const Section& section, Config& config) {
  for (const KeySection* inner : sections_in(table)) {
    const Field* field = section.find(leaf_of(*inner));
    if (field == nullptr) continue;
    if (inner->path == "interpolation" && field->is_scalar()) continue;  // the original's form
    config.lines[inner->path] = field->line();
    const Section map(*field, inner->accepted);
    read_section(*inner, map, config);
    read_sections_in(*inner, map, config);
    if (inner->check) inner->check(map, config);
  }
}

}  // namespace

const Key* find_key(std::string_view path) {
  for (const KeySection& section : key_table()) {
    for (const Key& key : section.keys) {
      if (path == path_of(section, key)) return &key;
    }
  }
  return nullptr;
}

const Key& key_at(std::string_view path) {
  const Key* key = find_key(path);
  if (key == nullptr) throw std::logic_error("no key " + std::string(path));
  return *key;
}

const KeySection& section_at(std::string_view path) {
  const auto found = std::ranges::find(key_table(), path, &KeySection::path);
  if (found == key_table().end()) throw std::logic_error("no section " + std::string(path));
  return *found;
}

std::vector<std::string> key_paths() {
  std::vector<std::string> paths;
  for (const KeySection& section : key_table()) {
    for (const std::string& name : accepted_names(section))
      paths.push_back(section.path.empty() ? name : section.path + "." + name);
  }
  return paths;
}

std::string path_of(const KeySection& section, const Key& key) {
  return (section.path.empty() ? "" : section.path + ".") + key.name;
}

std::string plain_accepted(const Key& key) {
  std::string text = key.accepted;
  std::erase(text, '`');
  return text;
}

std::string leaf_of(const KeySection& section) {
  return section.path.substr(section.path.rfind('.') + 1);
}

std::vector<const KeySection*> sections_in(const KeySection& section) {
  std::vector<const KeySection*> inner;
  for (const KeySection& other : key_table()) {
    if (!other.path.empty() && parent_of(other) == section.path) inner.push_back(&other);
  }
  return inner;
}

Settings shared_settings(const Config& config, std::string_view section) {
  const KeySection& table = section_at(section);
  Settings settings;
  for (const Key& key : table.keys) {
    if (key.shared) settings.emplace_back(path_of(table, key), key.print(config).value_or(""));
  }
  return settings;
}

std::vector<std::string> accepted_names(const KeySection& section) {
  std::vector<std::string> names;
  for (const Key& key : section.keys) names.push_back(key.name);
  for (const KeySection* inner : sections_in(section)) names.push_back(leaf_of(*inner));
  for (const Key& key : section.keys) {
    if (!key.alias.empty()) names.push_back(key.alias);
  }
  return names;
}

void read_keys(const Section& root, Config& config) {
  const KeySection& top = section_at("");
  for (const Key& key : top.keys) {
    if (key.name != "nodes") read_key(key, root, config);
  }
  read_sections_in(top, root, config);
}

InterpolationParameters read_parameters(const std::string& method, const Section& section,
                                        const std::vector<std::string>& also_known) {
  const std::vector<InterpolationParameterSpec>& specs =
      interpolation_registry().find(method)->parameters;
  std::vector<std::string> known = also_known;
  for (const InterpolationParameterSpec& spec : specs) known.push_back(spec.name);
  section.accept_only(known, key_paths());
  InterpolationParameters parameters;
  for (const InterpolationParameterSpec& spec : specs) {
    if (const Field* field = section.find(spec.name)) {
      parameters[spec.name] = field->number(spec.minimum, spec.maximum);
    }
  }
  return parameters;
}

}  // namespace dpwa::config
