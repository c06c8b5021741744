#include <doctest/doctest.h>
#include <sys/stat.h>

#include <string>

#include "dpwa/security/key_file.h"
#include "dpwa/security/security.h"
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

}  // namespace dpwa
