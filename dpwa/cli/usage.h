#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace CLI {
class App;
class ParseError;
class Validator;
}  // namespace CLI

namespace dpwa::cli {

// The text with its lines broken at blanks so that each has `width` columns at most. What follows
// the first part of a line stands below it: the description of an option below its description,
// anything else below the beginning of the line. A word that is too long stays as it is. Pure.
std::string wrapped(const std::string& text, std::size_t width = 80);

// Gives the help of `app` lines of 80 columns, and that of the subcommands that are added later.
// For every program of the project.
void format_help(CLI::App& app);

// Takes one of these words, and suggests the nearest of them for another one.
CLI::Validator one_of(const std::vector<std::string>& words);

// The fault of a command line that `app` refused, in one line: unknown options come first, in
// the order given, each with the nearest one that there is; else an unknown subcommand, a word too
// many, or what the parser says. For every program of the project.
std::string usage_problem(const CLI::App& app, const CLI::ParseError& error);

// Gives `app` and each of its subcommands the option --version, which prints `text`.
void add_version(CLI::App& app, const std::string& text);

// The command line that prints the help for it: "dpwa --help", or "dpwa config check --help" where
// that subcommand refused its words.
std::string help_of(const CLI::App& app);

}  // namespace dpwa::cli
