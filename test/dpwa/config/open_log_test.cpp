#include "dpwa/config/open_log.h"

#include <doctest/doctest.h>

#include <new>
#include <string>

#include "dpwa/config/reload.h"
#include "test/support/log_file.h"

namespace dpwa {
namespace {

using test::LogFile;

}  // namespace

TEST_CASE("a log.file that cannot be opened is named with its line, and the log stays as it is") {
  const LogFile before;
  const Config config = parse_cluster(
      "nodes: [{name: w1, port: 1}]\nlog:\n  level: warn\n  file: /dev/null/a.log\n", "c.yaml");
  std::string error;
  try {
    open_log(config).use();
  } catch (const ConfigError& thrown) {
    error = thrown.what();
  }
  CHECK(error.starts_with("c.yaml:4: log.file: "));
  CHECK(error.find("/dev/null/a.log") != std::string::npos);
  CHECK(error.ends_with("; accepted: a file that can be written, or \"\" for stderr"));
  log(LogLevel::info, "test", "still here");
  CHECK(before.has("still here"));
}

TEST_CASE("a log that is opened and not used changes nothing") {
  const LogFile before;
  { const NewLog other("off", "", ""); }
  log(LogLevel::info, "test", "still here");
  CHECK(before.has("still here"));
}

TEST_CASE("a quoted text cannot begin a line of the log or turn one") {
  const LogFile file;
  log(LogLevel::warn, "test", "'a\nb' and 'w\u202E1' failed");
  CHECK(file.has("test: 'a\\x0ab' and 'w\\xe2\\x80\\xae1' failed\n"));
}

TEST_CASE("an exception of a reload becomes one line of the log") {
  const LogFile file;
  reload_or_keep([] { throw ConfigError("c.yaml:3: gossip: wrong"); });
  CHECK(file.has("config: not reloaded: c.yaml:3: gossip: wrong\n"));
  reload_or_keep([] { throw std::bad_alloc(); });
  CHECK(file.has("config: not reloaded: out of memory\n"));
  reload_or_keep([] {});
}

}  // namespace dpwa
