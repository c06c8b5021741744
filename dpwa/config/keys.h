#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dpwa/base/settings.h"
#include "dpwa/config/config.h"

namespace dpwa::config {

class Field;
class Section;

// Properties that only some keys need, beside name, place, format and comment.
struct KeyDetails {
  std::string comment{};   // in the file that `dpwa init` writes; empty: the key is not in it
  std::string accepted{};  // in Markdown, instead of the words of the format
  std::string alias{};     // a second name, from the original dpwa
  std::string mode{};      // of security: the one mode that the key belongs to
  bool reloads = false;    // a running node takes a new value over
  bool shared = false;     // all processes of a run need it alike: they compare it at the start
};

// A key of the cluster file: all that reading, printing, reloading and documenting it need.
struct Key : KeyDetails {
  std::string name;
  std::string meaning;        // in Markdown, for the key reference
  std::string default_value;  // as a person writes it; empty: there is none
  bool quoted = false;

  std::function<void(const Field& field, Config& config)> read;           // throws ConfigError
  std::function<std::optional<std::string>(const Config& config)> print;  // none: no value
  std::function<void(const Config& from, Config& to)> copy;
};

enum class Layout { block, flow };  // one key on each line, or {key: value, ...}

// A map of the cluster file.
struct KeySection {
  std::string path;  // "" is the file itself, "gossip", "gossip.firewall"
  Layout layout = Layout::block;
  std::string accepted = "a map";  // for an error line
  std::vector<Key> keys{};
  // The key without which the section means nothing: it is refused, and not printed. Empty: none.
  std::string required{};
  // Checks more than one value of the section. Throws ConfigError.
  std::function<void(const Section& section, const Config& config)> check{};
};

// Every key of the cluster file, in the order in which it is printed. A section comes before those
// inside it. Three exceptions have code of their own: the maps in the lists `nodes` and
// `kvstore.servers` (nodes.h), the parameters of interpolation methods, and the form of the
// original dpwa (original_form.h).
const std::vector<KeySection>& key_table();

// By path, such as "gossip.timeout_ms" and "gossip". Null, or std::logic_error, when there is none.
const Key* find_key(std::string_view path);
const Key& key_at(std::string_view path);
const KeySection& section_at(std::string_view path);
std::vector<std::string> key_paths();  // of all keys and sections
std::string path_of(const KeySection& section, const Key& key);
std::string plain_accepted(const Key& key);  // without the marks of Markdown
// "firewall" of "gossip.firewall".
std::string leaf_of(const KeySection& section);
std::vector<const KeySection*> sections_in(const KeySection& section);

// The values of the keys of a section that all processes of a run need alike.
Settings shared_settings(const Config& config, std::string_view section);

// The names that a section accepts, in the order of error lines.
std::vector<std::string> accepted_names(const KeySection& section);

// Reads everything in the file except `nodes` into `config`. Throws ConfigError for an unknown key,
// a wrong type, or a value out of range.
void read_keys(const Section& root, Config& config);

// Parameters of an interpolation method, each within the range of the registry. `also_known`: keys
// of the section that are no parameters.
InterpolationParameters read_parameters(const std::string& method, const Section& section,
                                        const std::vector<std::string>& also_known = {});

}  // namespace dpwa::config
