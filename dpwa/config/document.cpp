#include "dpwa/config/document.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>

#include <algorithm>
#include <boost/locale/utf.hpp>
#include <cerrno>
#include <cstddef>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "dpwa/base/file_descriptor.h"
#include "dpwa/base/plain_text.h"
#include "dpwa/config/text.h"

namespace dpwa::config {
namespace {

namespace utf = boost::locale::utf;

using std::chrono::milliseconds;
using SteadyClock = std::chrono::steady_clock;

constexpr const char* accepted = "; accepted: a cluster file, or a pipe that is being written";

std::string words_for(int error) {
  return std::generic_category().message(error);
}

// Waits that long for input. The result is the events of poll(): POLLIN, POLLHUP; 0 = none.
short events_within(int descriptor, milliseconds patience) {
  const auto deadline = SteadyClock::now() + patience;
  while (true) {
    const auto left = std::chrono::ceil<milliseconds>(deadline - SteadyClock::now());
    pollfd waited{descriptor, POLLIN, 0};
    const int ready = ::poll(&waited, 1, static_cast<int>(std::max(left, milliseconds(0)).count()));
    if (ready > 0) return waited.revents;
    if (ready == 0 || errno != EINTR) return 0;
  }
}

constexpr const char* open_quote =
    "a quote that is not closed on its line; accepted: text between two quotes";
constexpr const char* several_lines =
    "a value of several lines; accepted: each key and each value on one line";
constexpr const char* tab_in_indentation = "a tab in the indentation; accepted: spaces";

// Whether the quoted text at the beginning of `line` ends there.
bool closes_quote(std::string_view line) {
  const char quote = line.front();
  for (std::size_t i = 1; i < line.size(); ++i) {
    if (quote == '"' && line[i] == '\\') {
      ++i;
    } else if (line[i] == quote) {
      if (quote == '"' || !line.substr(i + 1).starts_with(quote)) return true;
      ++i;  // '' in single quotes stands for one
    }
  }
  return false;
}

// The rest of the first line of `rest`, which begins with a value, without anchor and tag.
std::string_view line_of_value(std::string_view rest) {
  std::string_view line = rest.substr(0, rest.find('\n'));
  while (line.starts_with('&') || line.starts_with('!')) {
    line.remove_prefix(std::min(line.find_first_of(" \t"), line.size()));
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  }
  return line;
}

// The fault of a scalar that begins `rest` of a text. Null: it ends on its line.
const char* fault_of_scalar(std::string_view rest, std::string_view value) {
  const std::string_view line = line_of_value(rest);
  if (line.starts_with('"') || line.starts_with('\'')) {
    return closes_quote(line) ? nullptr : open_quote;
  }
  return line.starts_with(value) ? nullptr : several_lines;  // a plain scalar is taken as it is
}

// The tags that say of a value what it is without them.
bool is_known(const std::string& tag) {
  constexpr std::string_view yaml = "tag:yaml.org,2002:";
  constexpr std::string_view types[] = {"str", "int", "float", "bool", "seq", "map"};
  if (tag.empty() || tag == "?" || tag == "!") return true;
  return tag.starts_with(yaml) &&
         std::ranges::find(types, std::string_view(tag).substr(yaml.size())) != std::end(types);
}

// Counts the documents, checks the scalars and tags of a text, and places its nulls. YAML lets a
// scalar go on for lines: a quote that is not closed, or a line that is indented too far, would
// silently take the keys that follow for a part of a value.
class TextCheck : public YAML::EventHandler {
 public:
  TextCheck(std::string_view text, Locations& locations) : text_(text), locations_(locations) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1)
      locations_.fail_at(mark.line + 1, "", "a second YAML document; accepted: one");
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override {
    const std::string_view line = line_of_value(rest_at(mark));
    for (const std::string_view word : {"null", "Null", "NULL", "~"}) {
      if (line.starts_with(word)) locations_.place_null(mark.pos, std::string(word));
    }
  }
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                const std::string& value) override {
    check_tag(mark, tag);
    const char* const fault = fault_of_scalar(rest_at(mark), value);
    if (fault == open_quote) fail(mark.line + 1, fault);
    if (fault == several_lines && first_long_ == 0) first_long_ = mark.line + 1;
  }
  // For the end of the text: what yaml-cpp says of a later line is nearer to the cause.
  void check_lengths() const {
    if (first_long_ != 0) fail(first_long_, several_lines);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {
    check_tag(mark, tag);
    open_lines_.push_back(mark.line + 1);
  }
  void OnSequenceEnd() override { open_lines_.pop_back(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {
    check_tag(mark, tag);
    open_lines_.push_back(mark.line + 1);
  }
  void OnMapEnd() override { open_lines_.pop_back(); }

  // The line to name for what yaml-cpp says of the text: for a bracket that is not closed the one
  // where it opens, as yaml-cpp notices it lines later.
  int line_of(const YAML::Exception& exception) const {
    const bool is_open = exception.msg == YAML::ErrorMsg::END_OF_MAP_FLOW ||
                         exception.msg == YAML::ErrorMsg::END_OF_SEQ_FLOW;
    return is_open && !open_lines_.empty() ? open_lines_.back() : exception.mark.line + 1;
  }

 private:
  [[noreturn]] void fail(int line, const std::string& fault) const {
    locations_.fail_at(line, "", "YAML syntax: " + fault);
  }
  void check_tag(const YAML::Mark& mark, const std::string& tag) const {
    if (!is_known(tag))
      fail(mark.line + 1, "the unknown tag " + shown(tag) + "; accepted: values without a tag");
  }
  std::string_view rest_at(const YAML::Mark& mark) const {
    return text_.substr(std::min(static_cast<std::size_t>(mark.pos), text_.size()));
  }

  const std::string_view text_;  // without a byte order mark, so that marks are places in it
  Locations& locations_;
  std::vector<int> open_lines_;  // where the lists and maps begin that have not ended
  int documents_ = 0;
  int first_long_ = 0;  // the line of the first value of several lines; 0: there is none
};

// The faults of YAML that a cluster file is likely to have: what yaml-cpp says of each, and what is
// wrong with the line.
struct YamlFault {
  std::string_view message;  // it begins so
  const char* words;
};
const YamlFault yaml_faults[] = {
    {YAML::ErrorMsg::END_OF_MAP,
     "a line that belongs to no map; accepted: the keys of a map below one another, indented alike "
     "and with spaces"},
    {YAML::ErrorMsg::END_OF_SEQ,
     "a line that belongs to no list; accepted: the entries of a list below one another, each with "
     "'- ', indented alike and with spaces"},
    {YAML::ErrorMsg::END_OF_MAP_FLOW,
     "a '{' that is not closed, or a ',' that is missing after it; accepted: {key: value, key: "
     "value}"},
    {YAML::ErrorMsg::END_OF_SEQ_FLOW,
     "a '[' that is not closed, or a ',' that is missing after it; accepted: [value, value]"},
    {YAML::ErrorMsg::FLOW_END,
     "a ']' or '}' that closes nothing; accepted: one for each '[' or '{'"},
    {YAML::ErrorMsg::MAP_VALUE,
     "a ':' where no key can be; accepted: one key on a line, indented like the others of its map"},
    {YAML::ErrorMsg::MAP_KEY,
     "a '?' where no key can be; accepted: 'key: value', indented like the others of its map"},
    {YAML::ErrorMsg::BLOCK_ENTRY,
     "a '-' where no list can begin; accepted: the entries of a list below one another, indented "
     "alike"},
    {YAML::ErrorMsg::TAB_IN_INDENTATION, tab_in_indentation},
    {YAML::ErrorMsg::BAD_FILE,
     "lists and maps nested too deeply; accepted: no deeper than the keys of a cluster file"},
    {YAML::ErrorMsg::UNKNOWN_TOKEN,
     "a value that begins with a character that YAML reserves; accepted: the value in quotes"},
    {YAML::ErrorMsg::UNKNOWN_ANCHOR,
     "an alias (*name) of a value that was not marked (&name) before; accepted: the value itself"},
    {YAML::ErrorMsg::INVALID_ESCAPE,
     "an unknown escape after '\\' in double quotes; accepted: '\\\\' for a backslash, or single "
     "quotes"},
};

// Whether a tab is before the first other character of that line, counted from 0.
bool is_indented_by_tab(std::string_view text, int line) {
  for (; line > 0 && !text.empty(); --line)
    text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  return text.substr(0, text.find_first_not_of(" \t")).find('\t') != std::string_view::npos;
}

std::string words_for(const YAML::Exception& exception, std::string_view text) {
  if (is_indented_by_tab(text, exception.mark.line)) return tab_in_indentation;
  for (const YamlFault& fault : yaml_faults) {
    if (exception.msg.starts_with(fault.message)) return fault.words;
  }
  return one_line(exception.msg);
}

// YAML::LoadAll is no alternative: for a document that begins with ',' it never ends and takes all
// memory.
void check_text(const std::string& text, TextCheck& check) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  if (parser.HandleNextDocument(check)) parser.HandleNextDocument(check);
  check.check_lengths();
}

// A terminal obeys control characters. YAML ends a line at a lone carriage return, yaml-cpp does
// not, and would take the next key for a part of a comment.
void refuse_controls(const std::string& text, const Locations& locations) {
  int line = 1;
  int column = 0;
  for (auto position = text.begin(); position != text.end();) {
    const auto start = position;
    const utf::code_point c = utf::utf_traits<char>::decode(position, text.end());
    const bool valid = c != utf::illegal && c != utf::incomplete;
    ++column;
    if (c == '\n') {
      ++line;
      column = 0;
    }
    const bool ends_line = c == '\r' && position != text.end() && *position == '\n';
    if (valid && (!is_control(c) || c == '\t' || c == '\n' || ends_line)) continue;
    const std::string shown = one_line(std::string(start, valid ? position : start + 1));
    const std::string what = !valid   ? "the byte " + shown + ", which is not UTF-8"
                             : c == 0 ? "a zero byte"
                                      : "the control character " + shown;
    locations.fail_at(line, "",
                      "column " + std::to_string(column) + ": " + what +
                          "; accepted: text in UTF-8 without control characters");
  }
}

}  // namespace

std::string read_cluster_text(const std::filesystem::path& file, const Locations& locations,
                              const PipePatience& patience) {
  // Not blocking: otherwise opening a pipe would wait for a writer.
  const FileDescriptor descriptor(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (!descriptor.valid() || ::fstat(descriptor.get(), &status) != 0)
    locations.fail("", "cannot be read: " + words_for(errno));
  if (S_ISDIR(status.st_mode)) locations.fail("", "is a directory; accepted: a cluster file");
  const bool is_pipe = S_ISFIFO(status.st_mode);
  const auto deadline = SteadyClock::now() + patience.for_all;
  std::string text;
  std::vector<char> part(std::size_t{64} << 10);
  bool ended = false;   // the pipe has had writers, and has none any more
  bool waited = false;  // for a writer
  while (text.size() <= max_file_bytes) {
    const ssize_t got = ::read(descriptor.get(), part.data(), part.size());
    if (got > 0) {
      text.append(part.data(), static_cast<std::size_t>(got));
      continue;
    }
    if (got < 0 && errno == EINTR) continue;
    const bool has_writer = got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
    if (got < 0 && !has_writer) locations.fail("", "cannot be read: " + words_for(errno));
    if (!has_writer && (!is_pipe || ended || !text.empty())) break;
    const auto left = std::chrono::ceil<milliseconds>(deadline - SteadyClock::now());
    const milliseconds longest = has_writer ? patience.for_text : patience.for_writer;
    const short events =
        !has_writer && waited ? 0 : events_within(descriptor.get(), std::min(longest, left));
    ended = (events & POLLHUP) != 0 && (events & POLLIN) == 0;
    if (events == 0 && has_writer && left < longest) {
      locations.fail("", "was not completely written within " +
                             std::to_string(patience.for_all.count()) + " ms" + accepted);
    }
    if (events == 0 && has_writer) {
      locations.fail("", "was not completely written: nothing has arrived for " +
                             std::to_string(longest.count()) + " ms" + accepted);
    }
    if (events == 0 && waited) {
      const std::string so_long =
          longest.count() == 0 ? "" : " for " + std::to_string(longest.count()) + " ms";
      locations.fail("", "is a pipe that no process has opened for writing" + so_long + accepted);
    }
    waited = waited || !has_writer;
  }
  text.resize(std::min(text.size(), max_file_bytes + 1));
  return text;
}

std::string in_utf8(std::string text, const Locations& locations) {
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff"))
    locations.fail("", "begins as text in UTF-16; accepted: text in UTF-8");
  if (text.starts_with("\xef\xbb\xbf")) text.erase(0, 3);
  return text;
}

YAML::Node read_document(const std::filesystem::path& file, Locations& locations,
                         const PipePatience& patience) {
  return parse_document(read_cluster_text(file, locations, patience), locations);
}

YAML::Node parse_document(std::string text, Locations& locations) {
  if (text.size() > max_file_bytes) {
    locations.fail("", "is too large for a cluster file; accepted: at most 4 MiB");
  }
  text = in_utf8(std::move(text), locations);
  refuse_controls(text, locations);
  // A value missing at the very end is then told from a written null by its line (field.h).
  if (!text.ends_with('\n')) text += '\n';
  YAML::Node document;
  TextCheck check(text, locations);
  try {
    check_text(text, check);
    document = YAML::Load(text);
  } catch (const YAML::Exception& exception) {
    locations.fail_at(check.line_of(exception), "", "YAML syntax: " + words_for(exception, text));
  }
  if (document.IsNull())
    locations.fail("", "is empty; accepted: a map of settings, such as 'nodes' and 'backend'");
  return document;
}

}  // namespace dpwa::config
