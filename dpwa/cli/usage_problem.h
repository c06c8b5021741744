#pragma once

#include <string>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace dpwa::cli {

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
