#include <CLI/App.hpp>
#include <algorithm>
#include <memory>
#include <ostream>
#include <string>

#include "dpwa/cli/commands.h"
#include "dpwa/cli/text_table.h"
#include "dpwa/config/keys.h"

namespace dpwa::cli {
namespace {

using config::Key;
using config::KeySection;

// The own entry of `nodes` is kept, and so are the sections as such.
std::string reload_of(const KeySection& section, const Key& key) {
  if (config::path_of(section, key) == "nodes") return "other nodes";
  return key.reloads ? "yes" : "no";
}

void list(std::ostream& out) {
  TextTable table({"KEY", "DEFAULT", "RELOAD", "ACCEPTED"});
  for (const KeySection& section : config::key_table()) {
    for (const Key& key : section.keys) {
      std::string accepted = key.accepted;
      std::erase(accepted, '`');
      table.add({config::path_of(section, key), key.default_value.empty() ? "-" : key.default_value,
                 reload_of(section, key), accepted});
    }
  }
  table.print(out);
}

std::string code(const std::string& text) {
  return text.empty() ? "–" : '`' + text + '`';
}

// A row of a table in Markdown, where '|' ends a cell.
void print_row(std::ostream& out, const std::vector<std::string>& cells) {
  for (const std::string& cell : cells) {
    out << "| ";
    for (const char c : cell) {
      if (c == '|') out << '\\';
      out << c;
    }
    out << ' ';
  }
  out << "|\n";
}

// As GitHub makes the anchor of the heading "## `gossip.firewall`".
std::string anchor_of(const KeySection& section) {
  std::string anchor = section.path;
  std::erase(anchor, '.');
  return anchor;
}

// One table a section, between the two lines that docs/CONFIGURATION.md has around it.
void print_reference(std::ostream& out) {
  for (const KeySection& section : config::key_table()) {
    out << "<!-- keys of " << (section.path.empty() ? "the file" : section.path)
        << ", made by scripts/update_key_reference.py -->\n";
    print_row(out, {"key", "default", "accepted", "reload", "meaning"});
    out << "|---|---|---|---|---|\n";
    for (const Key& key : section.keys) {
      print_row(out,
                {code(key.name), code(key.default_value), key.accepted, reload_of(section, key),
                 key.reference.empty() ? key.comment : key.reference});
      if (key.alias.empty()) continue;
      print_row(out, {code(key.alias), "–", key.accepted, reload_of(section, key),
                      "the original's name of `" + key.name + "`; one of the two"});
    }
    for (const KeySection* inner : config::sections_in(section)) {
      print_row(out, {code(config::leaf_of(*inner)), "–", "a map", "",
                      "[below](#" + anchor_of(*inner) + ")"});
    }
    out << "<!-- end of keys -->\n";
  }
}

}  // namespace

void add_config_keys_command(CLI::App& parent, CommandContext& context) {
  auto markdown = std::make_shared<bool>(false);
  CLI::App* command = parent.add_subcommand(
      "keys",
      "List the keys of a cluster file: default, what is accepted, and whether a node that "
      "runs takes a new value over (SIGHUP)");
  command->add_flag("--markdown", *markdown,
                    "Print the tables of docs/CONFIGURATION.md, which say what each key means");
  command->callback([markdown, &context] {
    if (*markdown) {
      print_reference(context.out);
    } else {
      list(context.out);
    }
  });
}

}  // namespace dpwa::cli
