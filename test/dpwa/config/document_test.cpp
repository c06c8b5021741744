#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <thread>
#include <utility>

#include "dpwa/base/file_descriptor.h"
#include "dpwa/config/config.h"
#include "dpwa/config/document.h"
#include "test/dpwa/config/scratch_file.h"

namespace dpwa::config {
namespace {

using std::chrono::milliseconds;

constexpr PipePatience brief{milliseconds(20), milliseconds(20)};
constexpr PipePatience long_enough{milliseconds(60'000), milliseconds(60'000)};
const std::string accepted_text = "; accepted: text in UTF-8 without control characters";
constexpr const char* text = "nodes: [{name: w1, port: 24000}]\n";

// A pipe by name, in the place of a cluster file.
struct NamedPipe {
  test::ScratchFile scratch{""};
  std::filesystem::path path = scratch.path().parent_path() / "pipe";
  Locations locations{path.string()};
  NamedPipe() { REQUIRE(::mkfifo(path.c_str(), 0600) == 0); }
  std::string read(const PipePatience& patience) const {
    return read_cluster_text(path, locations, patience);
  }
  std::string error(const PipePatience& patience) const {
    try {
      read(patience);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "none";
  }
};

void write_all(int descriptor, const std::string& words) {
  REQUIRE(::write(descriptor, words.data(), words.size()) == static_cast<ssize_t>(words.size()));
}

}  // namespace

TEST_CASE_FIXTURE(NamedPipe, "a pipe without a writer is refused after a while") {
  CHECK(error(brief) == path.string() +
                            ": is a pipe that no process has opened for writing for 20 ms; "
                            "accepted: a cluster file, or a pipe that is being written");
}

TEST_CASE_FIXTURE(NamedPipe,
                  "a pipe that is held open and never written is refused after a while") {
  const FileDescriptor writer(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  REQUIRE(writer.valid());
  CHECK(error(brief) == path.string() +
                            ": was not completely written: nothing has arrived for 20 ms; "
                            "accepted: a cluster file, or a pipe that is being written");
  write_all(writer.get(), text);
  CHECK(error(brief).find("was not completely written") != std::string::npos);
}

TEST_CASE_FIXTURE(NamedPipe, "a pipe is waited for no longer than it may take altogether") {
  const FileDescriptor writer(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  REQUIRE(writer.valid());
  write_all(writer.get(), text);
  CHECK(error({milliseconds(60'000), milliseconds(60'000), milliseconds(20)}) ==
        path.string() +
            ": was not completely written within 20 ms; accepted: a cluster file, or a pipe that "
            "is being written");
}

TEST_CASE_FIXTURE(NamedPipe, "a reload waits for no writer, and hardly for a silent one") {
  const auto error = [this]() -> std::string {
    try {
      reload_config(path, "w1");
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "none";
  };
  CHECK(error() == path.string() +
                       ": is a pipe that no process has opened for writing; accepted: a cluster "
                       "file, or a pipe that is being written");
  const FileDescriptor writer(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  REQUIRE(writer.valid());
  CHECK(error().starts_with(path.string() + ": was not completely written"));
  CHECK(error().find(" 50 ms; accepted: ") != std::string::npos);
}

TEST_CASE_FIXTURE(NamedPipe, "a pipe is read to its end, however late and slowly it is written") {
  std::thread writing([this] {
    const FileDescriptor writer(
        ::open(path.c_str(), O_WRONLY | O_CLOEXEC));  // waits for the reader
    for (const char* part = text; *part != '\0'; ++part) write_all(writer.get(), {*part});
  });
  CHECK(read(long_enough) == text);
  writing.join();
}

TEST_CASE_FIXTURE(NamedPipe, "a pipe that is opened and closed without a word is an empty file") {
  std::thread writing([this] { FileDescriptor(::open(path.c_str(), O_WRONLY | O_CLOEXEC)); });
  CHECK(read(long_enough).empty());
  writing.join();
}

TEST_CASE_FIXTURE(NamedPipe, "a pipe without end is read no further than a cluster file may be") {
  const auto usual = std::signal(SIGPIPE, SIG_IGN);
  std::thread writing([this] {
    const FileDescriptor writer(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    const std::string part(std::size_t{64} << 10, '#');
    while (::write(writer.get(), part.data(), part.size()) > 0) {
    }
  });
  CHECK(read(long_enough).size() == max_file_bytes + 1);
  writing.join();  // the reader is gone: EPIPE
  std::signal(SIGPIPE, usual);
}

TEST_CASE("what a shell gives for <(...) loads, also when its writer has ended already") {
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  const FileDescriptor reader(ends[0]);
  {
    const FileDescriptor writer(ends[1]);
    write_all(writer.get(), text);
  }
  const std::string path = "/dev/fd/" + std::to_string(reader.get());
  CHECK(load_cluster(path).nodes.at(0).port == 24000);
}

TEST_CASE("faults of YAML are said in words for the writer of the file") {
  const std::pair<std::string, std::string> cases[] = {
      {"a: [1,\nb: 2\n",
       "1: YAML syntax: a '[' that is not closed, or a ',' that is missing after it; accepted: "
       "[value, value]"},
      {"a: {b: 1 c: 2}\n",
       "1: YAML syntax: a '{' that is not closed, or a ',' that is missing after it; accepted: "
       "{key: value, key: value}"},
      {"a: 1\n\tb: 2\n", "2: YAML syntax: a tab in the indentation; accepted: spaces"},
      {"a:\n\tb: 2\n", "2: YAML syntax: a tab in the indentation; accepted: spaces"},
      {"a:\n  b: 1\n  \tc: 2\n", "3: YAML syntax: a tab in the indentation; accepted: spaces"},
      {"a:\n\t- 2\n", "2: YAML syntax: a tab in the indentation; accepted: spaces"},
      {"a: 1\n- b\n",
       "2: YAML syntax: a line that belongs to no map; accepted: the keys of a map below one "
       "another, indented alike and with spaces"},
      {"a:\n- b: 1\n c: 2\n",
       "3: YAML syntax: a line that belongs to no list; accepted: the entries of a list below one "
       "another, each with '- ', indented alike and with spaces"},
      {"a:\n  b: 1\n   c: 2\n",
       "3: YAML syntax: a ':' where no key can be; accepted: one key on a line, indented like the "
       "others of its map"},
      {"a: @b\n",
       "1: YAML syntax: a value that begins with a character that YAML reserves; accepted: the "
       "value in quotes"},
      {"a: *b\n",
       "1: YAML syntax: an alias (*name) of a value that was not marked (&name) before; accepted: "
       "the value itself"},
      {"a: \"\\q\"\n",
       "1: YAML syntax: an unknown escape after '\\' in double quotes; accepted: '\\\\' for a "
       "backslash, or single quotes"},
  };
  for (const auto& [text, expected] : cases) {
    CAPTURE(text);
    CHECK(test::error_of(text) == expected);
  }
}

TEST_CASE("a bracket that is not closed is named with the line where it opens") {
  const std::string open = ": YAML syntax: a '";
  const std::pair<std::string, std::string> cases[] = {
      {"a: 1\nb: [1, 2\n", "2" + open + "["},
      {"a: 1\nb: [1, 2", "2" + open + "["},
      {"a: 1\nb: {c: 1\n", "2" + open + "{"},
      {"a:\n  - {c: 1}\n  - {c: 2, d: 3\n  - {c: 4}\ne: 5\n", "3" + open + "{"},
      {"a: [\n  {c: 1},\n  {c: 2,\n\n", "3" + open + "{"},
      {"a: [\n  {c: 1},\n  {c: [2, 3]}\n", "1" + open + "["},
      {"a: [\n  b: [1\n  ],\n  2\n", "1" + open + "["},
  };
  for (const auto& [text, expected] : cases) {
    CAPTURE(text);
    CHECK(test::error_of(text).starts_with(expected));
  }
}

TEST_CASE("a key or value that goes on in another line is refused where it begins") {
  const std::string quote =
      ": YAML syntax: a quote that is not closed on its line; accepted: text between two quotes";
  const std::string several =
      ": YAML syntax: a value of several lines; accepted: each key and each value on one line";
  const std::string nodes = "nodes: [{name: w1, port: 24000}]\n";
  const std::pair<std::string, std::string> cases[] = {
      {nodes + "log:\n  file: \"abc\nbackend: collective\n", "3" + quote},
      {nodes + "log:\n  file: 'abc\nbackend: collective\n", "3" + quote},
      {nodes + "log: {file: \"a}\ncluster: \"b\"\nbackend: collective\n", "2" + quote},
      {nodes + "log: {file: 'a'', level: info}\nbackend: collective\n", "2" + quote},
      {nodes + "log: {file: \"a\\\", level: info}\nbackend: collective\n", "2" + quote},
      {nodes + "log: {file: &mark \"a}\nbackend: collective\n", "2" + quote},
      {nodes + "cluster: \"a\\\n  b\"\n", "2" + quote},
      {nodes + "\"backend: collective\n", "2" + quote},
      {nodes + "? 'clus\n  ter'\n: a\n", "2" + quote},
      {nodes + "cluster: a\n  backend\n", "2" + several},
      {nodes + "cluster: a\n\n  b\n", "2" + several},
      {nodes + "cluster: |\n  a\n  backend: collective\n", "2" + several},
      {nodes + "cluster: >-\n  backend: collective\n", "2" + several},
      {nodes + "cluster: !!str |\n  backend: collective\n", "2" + several},
      {nodes + "log: {file: a\n  level, level: info}\n", "2" + several},
      {nodes + "cluster: &mark\n  a\n", "2" + several},
      {"nodes: [{name: w1, port: 24000, cores: [1, 2\n 3]}]\n", "1" + several},
  };
  for (const auto& [text, expected] : cases) {
    CAPTURE(text);
    CHECK(test::error_of(text) == expected);
  }
}

TEST_CASE("quotes, marks and tags that end on their line load") {
  for (const char* value :
       {"\"a # b: 'c'\"", "'it''s'", "it's", "a \"b", "\"a\\\\\"", "'\\'", "&mark a", "!!str 'a'",
        "!!str &mark \"a\\tb\"", "\"\"", "''", "\u00e9\u00fc # '"}) {
    CAPTURE(value);
    const std::string nodes = "nodes: [{name: w1, port: 24000}]\n";
    CHECK(test::error_of(nodes + "log:\n  file: " + value + "\n").empty());
    CHECK(test::error_of("\xef\xbb\xbf" + nodes + "log:\r\n  file: " + value + "\r\n").empty());
  }
}

TEST_CASE("an unknown tag is refused with its line") {
  const std::string nodes = "nodes: [{name: w1, port: 24000}]\n";
  const std::pair<std::string, std::string> cases[] = {
      {"gossip: {min_nodes: !foo 1}\n", "!foo"},
      {"cluster: !foo a\n", "!foo"},
      {"cluster: !!binary YQ==\n", "tag:yaml.org,2002:binary"},
      {"backend: !!null\n", "tag:yaml.org,2002:null"},
      {"gossip: !map {min_nodes: 1}\n", "!map"},
      {"!key cluster: a\n", "!key"},
      {"log: {file: &mark !<other> a}\n", "other"},
  };
  for (const auto& [text, tag] : cases) {
    CAPTURE(text);
    CHECK(test::error_of(nodes + text) ==
          "2: YAML syntax: the unknown tag '" + tag + "'; accepted: values without a tag");
  }
  CHECK(test::error_of("nodes: !foo [{name: w1, port: 24000}]\n").starts_with("1: YAML syntax: "));
  CHECK(test::error_of(nodes + "gossip: !!map {min_nodes: !!int 1, seed: ! 3}\n").empty());
}

TEST_CASE("what is nested too deeply is refused in one line") {
  for (const char* part : {"[", "{", "- ", "? ", "{a: ", "[{", ": "}) {
    std::string text;
    while (text.size() < 100'000) text += part;
    CAPTURE(part);
    CHECK(test::error_of(text).ends_with(
        ": YAML syntax: lists and maps nested too deeply; accepted: no deeper than the keys of a "
        "cluster file"));
  }
}

TEST_CASE("a list that holds itself is refused like any other value of a wrong kind") {
  CHECK(test::error_of("nodes: &all [*all]\n") ==
        "1: nodes[0]: a list is not a map; accepted: {name, host, port}");
  CHECK(test::error_of("nodes: [{name: w1, port: 24000}]\nlog: &log {file: *log}\n") ==
        "2: log.file: a map is not text; accepted: a path, or \"\" for stderr");
}

TEST_CASE("a zero byte in a cluster file is refused with its line") {
  CHECK(test::error_of("a: 1\n" + std::string(1, '\0') + "b: 2\n") ==
        "2: column 1: a zero byte" + accepted_text);
  CHECK(test::error_of(std::string("a: 1") + '\0') == "1: column 5: a zero byte" + accepted_text);
}

TEST_CASE("a cluster file in UTF-16 is refused") {
  const std::string plain = "nodes: [{name: w1, port: 24000}]\n";
  for (const bool little : {true, false}) {
    std::string wide;
    for (const char c : plain) wide += little ? std::string{c, '\0'} : std::string{'\0', c};
    CHECK(test::error_of((little ? "\xff\xfe" : "\xfe\xff") + wide) ==
          " begins as text in UTF-16; accepted: text in UTF-8");
    CHECK(test::error_of(wide).ends_with("a zero byte" + accepted_text));  // without a mark
  }
}

TEST_CASE("a control character is refused with its line and column") {
  const std::pair<std::string, std::string> cases[] = {
      {"a: 1\n# b\rc: 2\n", "2: column 4: the control character \\x0d"},
      {"a: 1\nb: \x04", "2: column 4: the control character \\x04"},
      {"# \u00e9\u20ac\x7f\n", "1: column 5: the control character \\x7f"},
      {"a: 1\r\n\u0080", "2: column 1: the control character \\xc2\\x80"},
      {"a: \"\u009b31m\"\n", "1: column 5: the control character \\xc2\\x9b"},
      {"a: 1\n# \u009f\n", "2: column 3: the control character \\xc2\\x9f"},
  };
  for (const auto& [text, expected] : cases) {
    CAPTURE(text);
    CHECK(test::error_of(text) == expected + accepted_text);
  }
  CHECK(test::error_of("nodes: [{name: w1, port: 24000}]\t# \u00a0\u26a0\ufe0f\U0001f600\r\n")
            .empty());
}

TEST_CASE("bytes that are not UTF-8 are refused with their line and column") {
  const std::pair<std::string, std::string> cases[] = {
      {"a: 1\n# caf\xe9\n", "2: column 6: the byte \\xe9"},      // Latin-1
      {"# \u20ac\xff\n", "1: column 4: the byte \\xff"},         //
      {"a: \xe2\x82\n", "1: column 4: the byte \\xe2"},          // cut
      {"a: 1\n\xf0\x9f\x98", "2: column 1: the byte \\xf0"},     // at the end
      {"a: \xc0\xaf\n", "1: column 4: the byte \\xc0"},          // too long
      {"a: \xed\xa0\x80\n", "1: column 4: the byte \\xed"},      // half a pair of UTF-16
      {"a: \xf4\x90\x80\x80\n", "1: column 4: the byte \\xf4"},  // beyond Unicode
  };
  for (const auto& [text, expected] : cases) {
    CAPTURE(expected);
    CHECK(test::error_of(text) == expected + ", which is not UTF-8" + accepted_text);
  }
}

}  // namespace dpwa::config
