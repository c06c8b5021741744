#pragma once

#include <cstddef>
#include <string>

namespace CLI {
class App;
}

namespace dpwa::cli {

// The text with its lines broken at blanks so that each has `width` columns at most. What follows
// the first part of a line stands below it: the description of an option below its description,
// anything else below the beginning of the line. A word that is too long stays as it is. Pure.
std::string wrapped(const std::string& text, std::size_t width = 80);

// Gives the help of `app` lines of 80 columns, and that of the subcommands that are added later.
// For every program of the project.
void format_help(CLI::App& app);

}  // namespace dpwa::cli
