#include "dpwa/cli/help_format.h"

#include <CLI/App.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <memory>
#include <sstream>
#include <utility>

namespace dpwa::cli {
namespace {

constexpr std::size_t column_of_descriptions = 30;  // of CLI11

class HelpFormat : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    return wrapped(CLI::Formatter::make_help(app, std::move(name), mode));
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

}  // namespace dpwa::cli
