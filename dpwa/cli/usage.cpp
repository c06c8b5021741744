#include "dpwa/cli/usage.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cctype>
#include <memory>
#include <sstream>
#include <string_view>
#include <utility>

#include "dpwa/base/plain_text.h"
#include "dpwa/config/text.h"

namespace dpwa::cli {
namespace {

constexpr std::size_t column_of_descriptions = 30;  // of CLI11

class HelpFormat : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    return wrapped(CLI::Formatter::make_help(app, std::move(name), mode));
  }
  // An argument that can be given in two ways, as FILE and --config, is said to be required once.
  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    std::string text = CLI::Formatter::make_option(option, is_positional);
    const std::string_view mark = " REQUIRED";
    const auto place = text.find(mark);
    if (!is_positional && option->get_positional() && place != std::string::npos)
      text.replace(place, mark.size(), mark.size(), ' ');  // the columns stay
    return text;
  }
};

// The column of the lines below.
std::size_t continuation_of(const std::string& line) {
  const std::size_t begin = line.find_first_not_of(' ');
  const bool described = begin < column_of_descriptions && line.size() > column_of_descriptions &&
                         line[column_of_descriptions - 1] == ' ' &&
                         line[column_of_descriptions] != ' ';
  return begin >= 2 && described ? column_of_descriptions : begin;
}

void append_wrapped(std::string& text, std::string line, std::size_t width) {
  if (line.size() <= width) {
    text += line + '\n';
    return;
  }
  const std::size_t continuation = continuation_of(line);
  const std::string indent(continuation, ' ');
  while (line.size() > width) {
    std::size_t end = line.rfind(' ', width);
    // A word that is too long: to its end.
    if (end == std::string::npos || line.find_first_not_of(' ') > end || end <= continuation)
      end = line.find(' ', std::max(width, continuation));
    if (end == std::string::npos) break;
    text += line.substr(0, line.find_last_not_of(' ', end) + 1) + '\n';
    line = indent + line.substr(std::min(line.find_first_not_of(' ', end), line.size()));
  }
  text += line + '\n';
}

// The chosen command and those around it.
std::vector<const CLI::App*> chosen_commands(const CLI::App& app) {
  std::vector<const CLI::App*> chain{&app};
  while (!chain.back()->get_subcommands().empty())
    chain.push_back(chain.back()->get_subcommands().front());
  return chain;
}

// A word that was not understood, and the command that received it.
using Leftover = std::pair<std::string, const CLI::App*>;

std::vector<Leftover> leftovers(const CLI::App& app) {
  std::vector<Leftover> words;
  for (const CLI::App* command : chosen_commands(app)) {
    for (const std::string& word : command->remaining()) words.emplace_back(word, command);
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

std::string wrapped(const std::string& text, std::size_t width) {
  std::istringstream lines(text);
  std::string result;
  for (std::string line; std::getline(lines, line);) append_wrapped(result, std::move(line), width);
  return result;
}

void format_help(CLI::App& app) {
  app.formatter(std::make_shared<HelpFormat>());
}

CLI::Validator one_of(const std::vector<std::string>& words) {
  std::string accepted;
  for (const std::string& word : words) accepted += (accepted.empty() ? "{" : ",") + word;
  const auto problem = [words](const std::string& word) {
    return std::ranges::find(words, word) == words.end() ? config::unknown_word(word, words) : "";
  };
  return {problem, accepted + '}'};
}

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
