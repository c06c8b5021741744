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
       "3: YAML syntax: a '[' that is not closed, or a ',' that is missing after it; accepted: "
       "[value, value]"},
      {"a: {b: 1 c: 2}\n",
       "1: YAML syntax: a '{' that is not closed, or a ',' that is missing after it; accepted: "
       "{key: value, key: value}"},
      {"a: 1\n\tb: 2\n", "2: YAML syntax: a tab in the indentation; accepted: spaces"},
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

TEST_CASE("a zero byte in a cluster file is refused with its line") {
  CHECK(test::error_of("a: 1\n" + std::string(1, '\0') + "b: 2\n") ==
        "2: a zero byte; accepted: text in UTF-8");
  CHECK(test::error_of(std::string("a: 1") + '\0') == "1: a zero byte; accepted: text in UTF-8");
  const std::string utf16(
      "\xff\xfe"
      "a\0\n\0",
      6);
  CHECK(test::error_of(utf16) ==
        "1: 'a' is not a cluster file; accepted: a map with at least 'nodes'");
}

}  // namespace dpwa::config

using namespace dpwa;
using namespace dpwa::test;

namespace {

void check_round_trip(const std::string& text) {
  CAPTURE(text);
  const ScratchFile first(text);
  const Config loaded = load_cluster(first.path());
  const std::string emitted = to_yaml(loaded);
  CAPTURE(emitted);
  const ScratchFile second(emitted);
  const Config again = load_cluster(second.path());
  check_same(loaded, again);
  CHECK(to_yaml(again) == emitted);
}

}  // namespace

TEST_CASE("the effective configuration loads back to the same configuration") {
  check_round_trip("nodes: [{name: a, port: 1}]\n");
  check_round_trip(R"(
cluster: "1"
nodes:
  - {name: "null", host: "::1", port: 24000, cores: [3, 1]}
  - {name: "true", host: 10.0.0.2, bind: "::", port: 24001}
backend: null
gossip:
  pull_probability: 0.1
  timeout_ms: 123456us
  step_budget_ms: 0.000001
  blend: lerp
  max_staleness: 1e20
  max_frozen_ms: 24h
  final_average: false
  seed: 9223372036854775807
  start_wait_ms: 0
  finish_wait_ms: 3.3
  min_nodes: 7
  flow_control: {initial: 3.5, min: 0, max: 1e9, on_success: 0.1, on_failure: -1e-3, recovery_per_second: 0.7}
  firewall: {distance: off, distance_multiple: 2.7, distance_samples: 32, quarantine_after: 0, quarantine_ms: 0.1, quarantine_max_ms: 24h}
  membership: {join: closed, suspect_ms: 0.3, forget_ms: 90s, max_members: 12}
interpolation: {method: linear, start: 0.30000000000000004, end: 0, target: 12345678.9, divergence_threshold: 1e-300}
security: {mode: insecure}
transport: {same_host: off, congestion_control: cubic, chunk_bytes: 4KiB, checksum: off, max_connections: 1, max_connections_per_address: 2, max_connections_per_peer: 3, max_replies: 65535, max_requests_per_second: 0}
log: {level: off, file: "a: \"b\" #c\n\td"}
)");
}

TEST_CASE("the files of a security mode come back") {
  check_round_trip(
      "nodes: [{name: a, port: 1}]\nsecurity: {mode: psk, key_file: \"a \\\"b\\\"/{name}\"}\n");
  check_round_trip(
      "nodes: [{name: a, port: 1}]\n"
      "security: {mode: mtls, ca: ../ca.pem, cert: \"/c/{name}.pem\", key: k}\n");
}

TEST_CASE("the original's form comes back in the map form with the same meaning") {
  check_round_trip(R"(
- nodes: [{name: a, host: localhost, port: 1}]
- timeout_ms: 250
- fetch_probability: 0.5
- interpolation: constant
- divergence_threshold: 0.2
- constant: {value: 0.25}
- loss: 0
)");
}
