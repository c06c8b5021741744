#include <doctest/doctest.h>
#include <sys/stat.h>

#include <string>

#include "dpwa/security/tls_context.h"
#include "test/support/certificates.h"

namespace dpwa {
namespace {

using test::SecretFolder;
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
    CHECK(error().starts_with("node.pem: holds no certificate in PEM: "));
  }
  SUBCASE("no authority") {
    folder.write("ca.pem", "words\n");
    CHECK(error().starts_with("ca.pem: holds no certificates of authorities in PEM: "));
  }
}

}  // namespace dpwa
