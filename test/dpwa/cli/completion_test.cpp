#include <doctest/doctest.h>

#include <array>
#include <cstdio>
#include <string>

#include "test/dpwa/cli/run_cli.h"
#include "test/dpwa/config/scratch_file.h"

using namespace dpwa::test;

namespace {

// What bash offers at the end of this command line. The programs beside dpwa are stand-ins that
// only print a help text.
std::string offered(const std::string& command, const std::string& words) {
  const ScratchFile script(run_cli({"completion", "bash"}).out + R"(
dpwa-train() { cat <<'END'
One training node.
Usage: dpwa-train [OPTIONS]

Options:
  -h,--help                   Print this help message and exit
  --config FILE REQUIRED      Cluster file
  --data mnist|cifar10|synthetic
                              Data set; default mnist
  --split iid|dirichlet:ALPHA|shared
                              How the nodes share the data
  --resume Needs: --checkpoint
END
}
dpwa-bench() { case $1 in
pull) printf '%s\n' 'Options:' '  --transport TEXT:{tcp,same_host}=tcp' '  --json                      Print';;
*) printf '%s\n' 'Options:' '  --version                   Print' '' 'Subcommands:' '  pull                        P' '  raw                         R';;
esac; }
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

TEST_CASE("bash completes subcommands, options and their words") {
  CHECK(offered("dpwa", "dpwa st").starts_with("status\n"));
  CHECK(offered("dpwa", "dpwa config ''") == "check keys nodes\n");
  CHECK(offered("dpwa", "dpwa config check --na") == "--name\n");
  CHECK(offered("dpwa", "dpwa init --ho") == "--host --hosts\n");
  CHECK(offered("dpwa", "dpwa init --security ''") == "insecure psk\n");
  CHECK(offered("dpwa", "dpwa completion b") == "bash\n");
  CHECK(offered("dpwa", "dpwa completion ''") == "bash zsh\n");
  CHECK(offered("dpwa", "dpwa status --watch --j") == "--json\n");
}

TEST_CASE("bash completes files where a file is asked for") {
  for (const char* words : {"dpwa status ''", "dpwa status --config ''", "dpwa config check x",
                            "dpwa keygen --add ''", "dpwa-train --config ''"}) {
    CAPTURE(words);
    const bool train = std::string(words).starts_with("dpwa-train");
    CHECK(offered(train ? "dpwa-train" : "dpwa", words) == "\n");  // nothing: files by default
  }
}

TEST_CASE("bash completes the programs beside dpwa by what their --help says") {
  CHECK(offered("dpwa-train", "dpwa-train --re") == "--resume\n");
  CHECK(offered("dpwa-train", "dpwa-train --data ''") == "mnist cifar10 synthetic\n");
  CHECK(offered("dpwa-train", "dpwa-train --split d") == "dirichlet:\n");
  CHECK(offered("dpwa-bench", "dpwa-bench p") == "pull\n");
  CHECK(offered("dpwa-bench", "dpwa-bench pull --j") == "--json\n");
  CHECK(offered("dpwa-bench", "dpwa-bench pull --transport ''") == "tcp same_host\n");
}

TEST_CASE("completion asks which shell, and zsh gets the same by its emulation") {
  CHECK(run_cli({"completion"}).exit_code == 2);
  CHECK(run_cli({"completion", "tcsh"}).exit_code == 2);
  const std::string zsh = run_cli({"completion", "zsh"}).out;
  CHECK(zsh.starts_with("autoload "));
  CHECK(zsh.ends_with(run_cli({"completion", "bash"}).out));
}
