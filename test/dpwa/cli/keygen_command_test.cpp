#include <doctest/doctest.h>
#include <sys/stat.h>

#include <fstream>
#include <sstream>

#include "dpwa/security/key_file.h"
#include "test/dpwa/cli/run_cli.h"
#include "test/support/certificates.h"

using namespace dpwa;
using namespace dpwa::test;

namespace {

// A folder with a key file as dpwa keygen makes it.
struct KeyFolder {
  SecretFolder folder;
  std::string file = folder.path("cluster.key").string();
  CliResult made = run_cli({"keygen", "-o", file});

  Keys keys() const {
    const auto keys = read_key_file(file);
    REQUIRE(keys.has_value());
    return *keys;
  }
  std::string text() const {
    std::ostringstream text;
    text << std::ifstream(file).rdbuf();
    return text.str();
  }
  unsigned mode() const {
    struct stat status {};
    REQUIRE(::stat(file.c_str(), &status) == 0);
    return status.st_mode & 07777U;
  }
};

}  // namespace

TEST_CASE_FIXTURE(KeyFolder, "keygen writes one key for its owner alone and does not show it") {
  CHECK(made.exit_code == 0);
  CHECK(made.out.empty());
  CHECK(made.err == "wrote " + file + ": the key of a cluster, only for its nodes (mode 0600)\n");
  CHECK(keys().size() == 1);
  CHECK(mode() == 0600);
  CHECK(text().starts_with("# dpwa cluster key: keep it secret."));
  const std::string key = text().substr(text().size() - 65, 64);
  CHECK_FALSE(test::has((made.out + made.err), key));
}

TEST_CASE_FIXTURE(KeyFolder, "keygen never replaces a file") {
  const std::string before = text();
  const CliResult again = run_cli({"keygen", "-o", file});
  CHECK(again.exit_code == 2);  // as dpwa init
  CHECK(again.err.starts_with("dpwa: -o: '" + file +
                              "' exists and is never replaced; accepted: another file"));
  CHECK(text() == before);
}

TEST_CASE("keygen does not take - for a file") {
  const CliResult result = run_cli({"keygen", "-o", "-"});
  CHECK(result.exit_code == 2);
  CHECK(result.err.starts_with("dpwa: -o: '-': a key is never shown; accepted: a file"));
  CHECK(result.out.empty());
  CHECK_FALSE(std::filesystem::exists("-"));
}

TEST_CASE_FIXTURE(KeyFolder, "keygen does not follow a link that leads nowhere") {
  const auto link = folder.path("link");
  std::filesystem::create_symlink(folder.path("elsewhere"), link);
  CHECK(run_cli({"keygen", "-o", link.string()}).exit_code == 2);
  CHECK_FALSE(std::filesystem::exists(folder.path("elsewhere")));
}

TEST_CASE_FIXTURE(KeyFolder, "keygen of a file that cannot be made is wrong usage") {
  const CliResult result = run_cli({"keygen", "-o", file + "/inside"});
  CHECK(result.exit_code == 2);
  CHECK(result.err == file + "/inside: cannot be created: Not a directory\n");
}

TEST_CASE_FIXTURE(KeyFolder, "a key is changed in three steps") {
  const Key old_key = keys()[0];
  CHECK(run_cli({"keygen", "--add", file}).exit_code == 0);
  REQUIRE(keys().size() == 2);
  const Key next_key = keys()[1];
  CHECK(keys()[0] == old_key);
  CHECK_FALSE(next_key == old_key);
  CHECK(run_cli({"keygen", "--promote", file}).exit_code == 0);
  REQUIRE(keys().size() == 2);
  CHECK(keys()[0] == next_key);
  CHECK(keys()[1] == old_key);
  CHECK(run_cli({"keygen", "--retire", file}).exit_code == 0);
  REQUIRE(keys().size() == 1);
  CHECK(keys()[0] == next_key);
  CHECK(mode() == 0600);
}

TEST_CASE_FIXTURE(KeyFolder, "a step that does not fit the file is refused and changes nothing") {
  for (const char* step : {"--promote", "--retire"}) {
    const CliResult result = run_cli({"keygen", step, file});
    CHECK(result.exit_code == 2);
    CHECK(result.err == file + ": holds only one key; add a second with dpwa keygen --add\n");
  }
  CHECK(run_cli({"keygen", "--add", file}).exit_code == 0);
  const std::string before = text();
  CHECK(run_cli({"keygen", "--add", file}).exit_code == 2);
  CHECK(run_cli({"keygen", "--add", file, "--retire", file}).exit_code == 2);
  CHECK(text() == before);
  REQUIRE(::chmod(file.c_str(), 0640) == 0);
  CHECK(test::has(run_cli({"keygen", "--promote", file}).err, "chmod 600"));
}
