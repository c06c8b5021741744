#include "dpwa/config/document.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "dpwa/base/file_descriptor.h"
#include "dpwa/base/plain_text.h"

namespace dpwa::config {
namespace {

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

// Listens for the start of documents and nothing else.
class DocumentStart : public YAML::EventHandler {
 public:
  int line() const { return line_; }

  void OnDocumentStart(const YAML::Mark& mark) override { line_ = mark.line + 1; }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t,
                const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}

 private:
  int line_ = 0;
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
    {YAML::ErrorMsg::TAB_IN_INDENTATION, "a tab in the indentation; accepted: spaces"},
    {YAML::ErrorMsg::EOF_IN_SCALAR,
     "a quote that is not closed; accepted: text between two quotes"},
    {YAML::ErrorMsg::UNKNOWN_TOKEN,
     "a value that begins with a character that YAML reserves; accepted: the value in quotes"},
    {YAML::ErrorMsg::UNKNOWN_ANCHOR,
     "an alias (*name) of a value that was not marked (&name) before; accepted: the value itself"},
    {YAML::ErrorMsg::INVALID_ESCAPE,
     "an unknown escape after '\\' in double quotes; accepted: '\\\\' for a backslash, or single "
     "quotes"},
};

std::string words_for(const YAML::Exception& exception) {
  for (const YamlFault& fault : yaml_faults) {
    if (exception.msg.starts_with(fault.message)) return fault.words;
  }
  return one_line(exception.msg);
}

// Text in UTF-16 or UTF-32, which is full of zero bytes, begins with a byte order mark.
bool is_utf8(const std::string& text) {
  using namespace std::string_view_literals;
  return !text.starts_with("\xff\xfe"sv) && !text.starts_with("\xfe\xff"sv) &&
         !text.starts_with("\0\0\xfe\xff"sv);
}

// YAML::LoadAll is no alternative: for a document that begins with ',' it never ends and takes all
// memory.
void refuse_second_document(const std::string& text, const Locations& locations) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  DocumentStart start;
  if (parser.HandleNextDocument(start) && parser.HandleNextDocument(start)) {
    locations.fail_at(start.line(), "", "a second YAML document; accepted: one");
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

YAML::Node read_document(const std::filesystem::path& file, const Locations& locations,
                         const PipePatience& patience) {
  return parse_document(read_cluster_text(file, locations, patience), locations);
}

YAML::Node parse_document(std::string text, const Locations& locations) {
  if (text.size() > max_file_bytes) {
    locations.fail("", "is too large for a cluster file; accepted: at most 4 MiB");
  }
  const std::size_t zero = text.find('\0');
  if (zero != std::string::npos && is_utf8(text)) {
    const auto line =
        1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(zero), '\n');
    locations.fail_at(static_cast<int>(line), "", "a zero byte; accepted: text in UTF-8");
  }
  // A value missing at the very end is then told from an explicit null by its line (field.h).
  if (!text.ends_with('\n')) text += '\n';
  YAML::Node document;
  try {
    document = YAML::Load(text);
    refuse_second_document(text, locations);
  } catch (const YAML::Exception& exception) {
    locations.fail_at(exception.mark.line + 1, "", "YAML syntax: " + words_for(exception));
  }
  if (document.IsNull()) locations.fail("", "is empty; accepted: a map with at least 'nodes'");
  return document;
}

}  // namespace dpwa::config
