#include "dpwa/cli/usage_problem.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cctype>
#include <utility>
#include <vector>

#include "dpwa/base/plain_text.h"
#include "dpwa/config/text.h"

namespace dpwa::cli {
namespace {

// A word that was not understood, and the command that received it.
using Leftover = std::pair<std::string, const CLI::App*>;

std::vector<Leftover> leftovers(const CLI::App& app) {
  std::vector<Leftover> words;
  const CLI::App* command = &app;
  while (command != nullptr) {
    for (const std::string& word : command->remaining()) words.emplace_back(word, command);
    const auto chosen = command->get_subcommands();
    command = chosen.empty() ? nullptr : chosen.front();
  }
  return words;
}

bool is_option(const std::string& word) {
  return word.size() > 1 && word[0] == '-' && word != "--" &&
         std::isdigit(static_cast<unsigned char>(word[1])) == 0;
}

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options())
    names.insert(names.end(), option->get_lnames().begin(), option->get_lnames().end());
  return names;
}

// The one option that begins with `word`, or the nearest; empty: none is near.
std::string meant(const std::string& word, const std::vector<std::string>& names) {
  const auto begins = [&word](const std::string& name) { return name.starts_with(word); };
  if (word.size() > 1 && std::ranges::count_if(names, begins) == 1)
    return *std::ranges::find_if(names, begins);
  return config::nearest_key(word, names);
}

std::string unknown_option(const Leftover& leftover) {
  const std::string option = leftover.first.substr(0, leftover.first.find('='));
  const std::string word = option.substr(std::min(option.find_first_not_of('-'), option.size()));
  const std::string name = meant(word, option_names(*leftover.second));
  return config::shown(option) + (name.empty() ? "" : ", did you mean '--" + name + "'?");
}

std::string unknown_subcommand(const Leftover& leftover) {
  std::vector<std::string> known;
  for (const CLI::App* one : leftover.second->get_subcommands({})) {
    if (!one->get_group().empty()) known.push_back(one->get_name());  // no group: hidden
  }
  return "unknown subcommand " + config::shown(leftover.first) + "," +
         config::suggestion(leftover.first, known) + " accepted: " + config::joined(known);
}

// The chosen command and those around it.
std::vector<const CLI::App*> chosen_commands(const CLI::App& app) {
  std::vector<const CLI::App*> chain{&app};
  while (!chain.back()->get_subcommands().empty())
    chain.push_back(chain.back()->get_subcommands().front());
  return chain;
}

// As a user types it, with its value where there is one to give: "FILE", "--config FILE".
std::string typed(const CLI::Option& option) {
  if (option.get_positional()) return option.get_name(/*positional=*/true);
  return option.get_name() + ' ' + option.get_type_name();
}

// Empty: nothing that must be there is missing.
std::string missing_option(const std::vector<const CLI::App*>& chain) {
  std::string line;
  for (const CLI::App* command : chain) line += command->get_name() + ' ';
  for (const CLI::Option* option : chain.back()->get_options()) {
    if (!option->get_required() || option->count() > 0) continue;
    const std::string words = typed(*option);
    return words.substr(0, words.find(' ')) + " is missing; accepted: " + line + words;
  }
  return "";
}

// Empty: none was given more often than it may be.
std::string repeated_option(const std::vector<const CLI::App*>& chain) {
  for (const CLI::Option* option : chain.back()->get_options()) {
    const auto most = static_cast<std::size_t>(option->get_items_expected_max());
    if (most != 1 || option->count() < 2) continue;
    const std::string name = option->get_name();
    const bool two_ways = option->get_positional() && !option->get_lnames().empty();
    return (two_ways ? option->get_name(/*positional=*/true) + " or " + name : name) +
           " is given " + std::to_string(option->count()) + " times; accepted: once";
  }
  return "";
}

}  // namespace

std::string usage_problem(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<Leftover> rest = leftovers(app);
  std::string unknown;
  int count = 0;
  for (const Leftover& leftover : rest) {
    if (!is_option(leftover.first)) continue;
    unknown += (count++ == 0 ? " " : "; ") + unknown_option(leftover);
  }
  if (count > 0) return (count == 1 ? "unknown option" : "unknown options") + unknown;
  const auto chain = chosen_commands(app);
  const std::string& kind = error.get_name();
  std::string problem;
  if (rest.empty() && kind == "RequiredError") problem = missing_option(chain);
  if (rest.empty() && kind == "ArgumentMismatch") problem = repeated_option(chain);
  if (!problem.empty()) return problem;
  if (rest.empty()) return one_line(error.what());
  const CLI::App& command = *rest.front().second;
  const bool needs_subcommand =
      command.get_require_subcommand_min() > 0 && command.get_subcommands().empty();
  if (needs_subcommand) return unknown_subcommand(rest.front());
  std::vector<std::string> words;
  for (const Leftover& leftover : rest) words.push_back(config::shown(leftover.first));
  return (words.size() == 1 ? "unexpected argument " : "unexpected arguments ") +
         config::joined(words);
}

std::string help_of(const CLI::App& app) {
  const std::vector<Leftover> rest = leftovers(app);
  std::string line = "--help";
  for (const CLI::App* command = rest.empty() ? chosen_commands(app).back() : rest.front().second;
       command != nullptr; command = command->get_parent())
    line = command->get_name() + ' ' + line;
  return line;
}

void add_version(CLI::App& app, const std::string& text) {
  app.set_version_flag("--version", text, "Print the version and exit");
  for (CLI::App* subcommand : app.get_subcommands({})) add_version(*subcommand, text);
}

}  // namespace dpwa::cli
