#include <doctest/doctest.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "dpwa/config/config.h"
#include "dpwa/security/key_file.h"
#include "dpwa/security/security.h"
#include "dpwa/security/tls_context.h"
#include "test/support/certificates.h"

namespace dpwa {
namespace {

using test::SecretFolder;

Config psk(const std::string& key_file) {
  Config config;
  config.security.mode = "psk";
  config.security.key_file = key_file;
  return config;
}

void write_key(const SecretFolder& folder, const std::string& name) {
  folder.write(name, key_file_text({new_key()}).text());
}

// In a child, as nothing makes a process dumpable again for certain: bit 0 = dumpable, bit 1 = a
// soft limit above 0 remains where the hard one allows it.
int state_with(const char* environment) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_DUMPABLE, 1);
    rlimit limit{};
    ::getrlimit(RLIMIT_CORE, &limit);
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_CORE, &limit);
    if (environment == nullptr) {
      ::unsetenv("DPWA_CORE_DUMPS");
    } else {
      ::setenv("DPWA_CORE_DUMPS", environment, 1);
    }
    forbid_core_dumps();
    ::getrlimit(RLIMIT_CORE, &limit);
    const bool limited = limit.rlim_cur == 0 && limit.rlim_max != 0;
    ::_exit((::prctl(PR_GET_DUMPABLE) == 1 ? 1 : 0) + (limited ? 0 : 2));
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

TEST_CASE("a reload takes the new key, and keeps the old one when the new file is bad") {
  const SecretFolder folder;
  write_key(folder, "k");
  Security security(psk(folder.path("k").string()), "w1", "w1");
  const auto first = security.context();
  CHECK_FALSE(security.reload().has_value());
  const auto second = security.context();
  CHECK(second != first);

  SUBCASE("malformed") {
    folder.write("k", "no key");
  }
  SUBCASE("readable by others") {
    ::chmod(folder.path("k").c_str(), 0644);
  }
  SUBCASE("gone") {
    std::filesystem::remove(folder.path("k"));
  }
  const auto error = security.reload();
  REQUIRE(error.has_value());
  CHECK(error->starts_with(folder.path("k").string() + ":"));
  CHECK(security.context() == second);
}

TEST_CASE("{name} in a path is the node's name") {
  const SecretFolder folder;
  write_key(folder, "w2.key");
  Config config = psk(folder.path("{name}.key").string());
  config.file = "cluster.yaml";
  config.lines["security.key_file"] = 7;
  CHECK_NOTHROW(Security(config, "w2", "w2"));
  CHECK_THROWS_WITH_AS(Security(config, "w1", "w1"),
                       ("cluster.yaml:7: security.key_file: " + folder.path("w1.key").string() +
                        ": cannot be read: No such file or directory; accepted: a regular file "
                        "that this user may read")
                           .c_str(),
                       ConfigError);
}

TEST_CASE("a program that is no node takes the files of the first node that has them here") {
  const SecretFolder folder;
  Config config;
  for (const char* name : {"w1", "w2"}) {
    NodeEntry node;
    node.name = name;
    config.nodes.push_back(node);
  }
  config.security = psk(folder.path("{name}.key").string()).security;
  CHECK_THROWS_AS(make_observer_security(config, ""), ConfigError);
  write_key(folder, "w2.key");
  CHECK(make_observer_security(config, "") != nullptr);
  CHECK_THROWS_AS(make_observer_security(config, "w1"), ConfigError);
  CHECK(make_observer_security(config, "w2") != nullptr);
  config.security = {};
  CHECK(make_observer_security(config, "") == nullptr);
}

TEST_CASE("a program with keys is not dumpable unless its environment asks for it") {
  rlimit hard{};
  REQUIRE(::getrlimit(RLIMIT_CORE, &hard) == 0);
  const int unlimited = 2;
  const int limited = hard.rlim_max == 0 ? unlimited : 0;
  CHECK(state_with(nullptr) == 0 + limited);
  CHECK(state_with("0") == 0 + limited);
  CHECK(state_with("1") == 1 + unlimited);
}

TEST_CASE("another value of DPWA_CORE_DUMPS is refused") {
  ::setenv("DPWA_CORE_DUMPS", "yes", 1);
  CHECK_THROWS_WITH_AS(forbid_core_dumps(),
                       "DPWA_CORE_DUMPS: 'yes' is not accepted; accepted: 0, 1", ConfigError);
  ::unsetenv("DPWA_CORE_DUMPS");
}

namespace {

using test::TestAuthority;

// The files of one node, each of which a test may spoil.
struct NodeFiles {
  SecretFolder folder;
  TestAuthority authority{folder, "ca"};
  std::string file(const std::string& name) const { return folder.path(name).string(); }

  std::string error(const std::string& name = "w1") const {
    const auto loaded =
        TlsContext::load({authority.file(), file("node.pem"), file("node.key"), name});
    if (loaded) return "none";
    const std::string place = folder.path("").string();
    std::string error = loaded.error().problem;
    for (auto at = error.find(place); at != std::string::npos; at = error.find(place))
      error.erase(at, place.size());
    return error;
  }
};

}  // namespace

TEST_CASE_FIXTURE(NodeFiles, "a certificate that names the node is loaded") {
  SUBCASE("as subjectAltName") {
    authority.sign(folder, "node", {.dns = "w1", .common_name = "another", .seconds = 600});
    CHECK(error("another") ==
          "node.pem: is for 'w1', not for this node; accepted: subjectAltName = DNS:another");
  }
  SUBCASE("as the common name, without a subjectAltName") {
    authority.sign(folder, "node", {.dns = "", .common_name = "w1", .seconds = 600});
  }
  CHECK(error() == "none");
  CHECK(error("") == "none");  // for a program that is no node, any name will do
}

TEST_CASE_FIXTURE(NodeFiles, "a node's own certificate that nobody would accept is refused") {
  SUBCASE("another name") {
    authority.sign(folder, "node", {.dns = "w2", .common_name = "w1", .seconds = 600});
    CHECK(error() == "node.pem: is for 'w2', not for this node; accepted: subjectAltName = DNS:w1");
  }
  SUBCASE("no name") {
    authority.sign(folder, "node", {.dns = "", .common_name = "", .seconds = 600});
    CHECK(error() ==
          "node.pem: is for no name, not for this node; accepted: subjectAltName = DNS:w1");
  }
  SUBCASE("expired") {
    authority.sign(folder, "node", {.dns = "w1", .common_name = "", .seconds = -600});
    CHECK(error() == "node.pem: has expired; accepted: one that is valid now");
  }
}

TEST_CASE_FIXTURE(NodeFiles, "files that are not what they should be are refused by name") {
  authority.sign(folder, "node", {.dns = "w1", .common_name = "", .seconds = 600});
  SUBCASE("the key of another certificate") {
    authority.sign(folder, "other", {.dns = "w1", .common_name = "", .seconds = 600});
    std::filesystem::rename(folder.path("other.key"), folder.path("node.key"));
    CHECK(error() ==
          "node.key: is not the key of the certificate in node.pem; accepted: the private key "
          "of that certificate");
  }
  SUBCASE("a key that others may read") {
    ::chmod(file("node.key").c_str(), 0644);
    CHECK(error() == "node.key: may be used by others (mode 0644); remedy: chmod 600 node.key");
  }
  SUBCASE("no key") {
    folder.write("node.key", "words\n");
    CHECK(error() == "node.key: holds no private key; accepted: one in PEM without a passphrase");
  }
  SUBCASE("no certificate") {
    folder.write("node.pem", "words\n");
    CHECK(error().starts_with("node.pem: holds no certificate in PEM: "));
  }
  SUBCASE("no file") {
    std::filesystem::remove(folder.path("node.pem"));
    CHECK(error() == "node.pem: cannot be read: No such file or directory");
  }
  SUBCASE("no file of authorities") {
    std::filesystem::remove(folder.path("ca.pem"));
    CHECK(error() == "ca.pem: cannot be read: No such file or directory");
  }
  SUBCASE("no authority") {
    folder.write("ca.pem", "words\n");
    CHECK(error().starts_with("ca.pem: holds no certificates of authorities in PEM: "));
  }
}

}  // namespace dpwa
