#include <doctest/doctest.h>

#include <array>
#include <cstdio>
#include <sstream>
#include <string>

#include "dpwa/base/version.h"
#include "dpwa/cli/usage.h"
#include "dpwa/config/backends.h"
#include "test/dpwa/cli/run_cli.h"
#include "test/dpwa/config/scratch_file.h"

using namespace dpwa;
using namespace dpwa::test;

TEST_CASE("the version and the help are results with exit code 0") {
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"--version"}, {"status", "--version"}, {"config", "check", "--version"}}) {
    CAPTURE(arguments.size());
    const CliResult result = run_cli(arguments);
    CHECK(result.exit_code == 0);
    CHECK(result.out ==
          "dpwa " + std::string(version()) + " (back ends: " + available_backends() + ")\n");
    CHECK(result.err.empty());
  }
}

TEST_CASE("the help names all back ends, in lines of at most 80 columns") {
  const std::string head = run_cli({"--help"}).out;
  for (const char* name : {"gossip", "collective", "kvstore", "null"})
    CHECK(head.find(std::string(name) + " (") < head.find("Usage:"));
  for (const std::vector<std::string>& command :
       std::vector<std::vector<std::string>>{{},
                                             {"init"},
                                             {"config"},
                                             {"config", "check"},
                                             {"config", "nodes"},
                                             {"config", "keys"},
                                             {"completion"},
                                             {"keygen"},
                                             {"node"},
                                             {"kvserver"},
                                             {"status"},
                                             {"top"},
                                             {"why"},
                                             {"doctor"}}) {
    auto arguments = command;
    arguments.emplace_back("--help");
    const CliResult result = run_cli(arguments);
    CHECK(result.exit_code == 0);
    CHECK(result.err.empty());
    CHECK(has(result.out, "Usage:"));
    std::istringstream lines(result.out);
    for (std::string line; std::getline(lines, line);) {
      CAPTURE(line);
      CHECK(line.size() <= 80);
    }
  }
}

TEST_CASE("long lines of a help are broken, each below its own beginning") {
  CHECK(cli::wrapped("short\n") == "short\n");
  CHECK(cli::wrapped("one two three\n", 8) == "one two\nthree\n");
  CHECK(cli::wrapped("  one two three\n", 9) == "  one two\n  three\n");
  CHECK(cli::wrapped("one incomprehensibilities two\n", 8) == "one\nincomprehensibilities\ntwo\n");
  const std::string option = "  --name NODE                 ";
  REQUIRE(option.size() == 30);
  CHECK(cli::wrapped(option + "what it is called\n", 41) ==
        option + "what it is\n" + std::string(30, ' ') + "called\n");
}

TEST_CASE("wrong usage ends with exit code 2 and nothing on standard output") {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{},
                                             {"config"},
                                             {"confg"},
                                             {"--nonsense"},
                                             {"config", "check"},
                                             {"config", "check", "a.yaml", "b.yaml"},
                                             {"config", "nodes"},
                                             {"init", "--nodes", "0"},
                                             {"init", "--nodes", "many"},
                                             {"init", "--nodes", "-3"},
                                             {"init", "--port", "65536"},
                                             {"init", "--port"}}) {
    CAPTURE(arguments.size());
    const CliResult result = run_cli(arguments);
    CHECK(result.exit_code == 2);
    CHECK(result.out.empty());
    CHECK(result.err.ends_with(" --help)\n"));
    CHECK(result.err.find('\n') == result.err.size() - 1);
  }
}

TEST_CASE("unknown options are named in the order given, each with the nearest one") {
  CHECK(run_cli({"status", "--cofig", "a.yaml"}).err ==
        "dpwa: unknown option '--cofig', did you mean '--config'? (see dpwa status --help)\n");
  CHECK(run_cli({"init", "--prt=5", "--node", "3", "--zzz", "1", "-q"}).err ==
        "dpwa: unknown options '--prt', did you mean '--port'?; '--node', did you mean '--nodes'?; "
        "'--zzz'; '-q' (see dpwa init --help)\n");
  // What is missing as well comes from the same slip, or can be said next time.
  CHECK(run_cli({"node", "--confg", "a.yaml"}).err ==
        "dpwa: unknown option '--confg', did you mean '--config'? (see dpwa node --help)\n");
  CHECK(run_cli({"--nonsense", "status", "a.yaml"}).err ==
        "dpwa: unknown option '--nonsense' (see dpwa --help)\n");
  CHECK(run_cli({"config", "check", "a.yaml", "b.yaml", "c.yaml"}).err ==
        "dpwa: unexpected arguments 'b.yaml', 'c.yaml' (see dpwa config check --help)\n");
}

TEST_CASE("a missing argument is named as a user types it") {
  CHECK(run_cli({"status"}).err ==
        "dpwa: FILE is missing; accepted: dpwa status FILE (see dpwa status --help)\n");
  CHECK(run_cli({"node"}).err ==
        "dpwa: --config is missing; accepted: dpwa node --config FILE (see dpwa node --help)\n");
}

TEST_CASE("an option given more often than once is named with how often it may be given") {
  CHECK(run_cli({"init", "--port", "1", "--port", "2", "--port", "3"}).err ==
        "dpwa: --port is given 3 times; accepted: once (see dpwa init --help)\n");
  CHECK(run_cli({"status", "a.yaml", "--config", "b.yaml"}).err ==
        "dpwa: FILE or --config is given 2 times; accepted: once (see dpwa status --help)\n");
}

TEST_CASE("a word that an option does not take is refused with the nearest that it takes") {
  CHECK(run_cli({"init", "--backend", "gosip"}).err ==
        "dpwa: --backend: 'gosip' is unknown, did you mean 'gossip'? accepted: gossip, collective, "
        "kvstore (see dpwa init --help)\n");
  CHECK(run_cli({"init", "--security", "none"}).err ==
        "dpwa: --security: 'none' is unknown, accepted: insecure, psk (see dpwa init --help)\n");
  CHECK(test::has(run_cli({"completion", "zhs"}).err, "did you mean 'zsh'?"));
}

TEST_CASE("an unknown subcommand suggests the nearest one") {
  CHECK(run_cli({"confg"}).err.starts_with(
      "dpwa: unknown subcommand 'confg', did you mean 'config'?"));
  CHECK(run_cli({"config", "chek", "a.yaml"}).err ==
        "dpwa: unknown subcommand 'chek', did you mean 'check'? accepted: check, keys, nodes "
        "(see dpwa config --help)\n");
}

namespace {

// A shell function in the place of dpwa, which prints its help.
std::string stand_in() {
  std::string text = "dpwa() { case $* in\n";
  for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{
           {}, {"status"}, {"init"}, {"config"}, {"config", "check"}}) {
    std::string words;
    auto arguments = command;
    arguments.push_back("--help");
    for (const std::string& word : arguments) words += (words.empty() ? "" : " ") + word;
    text += "'" + words + "') cat <<'END'\n" + run_cli(arguments).out + "END\n;;\n";
  }
  return text + "esac; }\n";
}

// What bash offers at the end of this command line. The programs are stand-ins that only print a
// help text.
std::string offered(const std::string& command, const std::string& words) {
  const ScratchFile script(run_cli({"completion", "bash"}).out + stand_in() + R"(
dpwa-train() { cat <<'END'
Options:
  --split iid|dirichlet:ALPHA|shared
                              How the nodes share the data
  --resume Needs: --checkpoint
END
}
COMP_WORDS=()" + words + R"()
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
function=$(complete -p )" + command +
                           R"( | sed -E 's/.*-F ([^ ]+).*/\1/')
$function
echo "${COMPREPLY[*]}"
)");
  std::string text;
  std::FILE* pipe = ::popen(("bash " + script.path().string() + " 2>&1").c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::array<char, 4096> part{};
  while (std::fgets(part.data(), part.size(), pipe) != nullptr) text += part.data();
  ::pclose(pipe);
  return text;
}

}  // namespace

TEST_CASE("bash completes subcommands, options, their words and files by what --help says") {
  CHECK(offered("dpwa", "dpwa config ''") == "check keys nodes\n");
  CHECK(offered("dpwa", "dpwa init --ho") == "--host --hosts\n");
  CHECK(offered("dpwa", "dpwa init --security ''") == "insecure psk\n");
  CHECK(offered("dpwa", "dpwa status --watch --j") == "--json\n");
  CHECK(offered("dpwa", "dpwa config check x") == "\n");  // nothing: files by default
  CHECK(offered("dpwa-train", "dpwa-train --re") == "--resume\n");
  CHECK(offered("dpwa-train", "dpwa-train --split d") == "dirichlet:\n");
}

TEST_CASE("completion asks which shell, and zsh gets the same by its emulation") {
  CHECK(run_cli({"completion"}).exit_code == 2);
  CHECK(run_cli({"completion", "tcsh"}).exit_code == 2);
  const std::string zsh = run_cli({"completion", "zsh"}).out;
  CHECK(zsh.starts_with("autoload "));
  CHECK(zsh.ends_with(run_cli({"completion", "bash"}).out));
}
