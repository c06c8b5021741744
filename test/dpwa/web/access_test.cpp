#include "dpwa/web/access.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "test/support/temporary_directory.h"

namespace dpwa {

namespace {

using web::Needs;

web::Request request(const std::string& host, const std::string& authorization = "") {
  return {.method = "GET", .target = "/metrics", .host = host, .authorization = authorization};
}

const web::Access access{"secret-of-the-test", {"w1", "w1.example"}};

unsigned status_of(const web::Request& request, Needs needs = Needs::token) {
  const auto refused = web::refusal(request, access, needs);
  return refused ? refused->status : 200;
}

}  // namespace

TEST_CASE("a reader needs the token, whole and with its scheme, for what is not public") {
  CHECK(status_of(request("w1:9100", "Bearer secret-of-the-test")) == 200);
  CHECK(status_of(request("w1:9100"), Needs::own_host) == 200);
  for (const char* given :
       {"", "Bearer ", "Bearer secret-of-the-tes", "Bearer secret-of-the-tesT",
        "Bearer secret-of-the-test ", "Basic secret-of-the-test", "secret-of-the-test"}) {
    CAPTURE(given);
    CHECK(status_of(request("w1:9100", given)) == 401);
  }
}

TEST_CASE(
    "a request is refused whose Host is a foreign name, with the token and for public files") {
  for (const char* host : {"evil.example", "evil.example:8080", "localhost.evil.example", "",
                           "127.0.0.1.evil.example:80", "w2:9100"}) {
    CAPTURE(host);
    CHECK(status_of(request(host, "Bearer secret-of-the-test")) == 403);
    CHECK(status_of(request(host), Needs::own_host) == 403);
    CHECK(status_of(request(host), Needs::nothing) == 200);  // a probe by the name of a service
  }
  for (const char* host : {"localhost", "localhost:9000", "127.0.0.1:8080", "10.2.0.7",
                           "[::1]:8080", "w1.example:9100"}) {
    CAPTURE(host);
    CHECK(status_of(request(host, "Bearer secret-of-the-test")) == 200);
  }
}

TEST_CASE("a server only reads: other methods are refused, whatever they ask for") {
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS", "CONNECT", "get"}) {
    web::Request asked = request("w1", "Bearer secret-of-the-test");
    asked.method = method;
    CAPTURE(method);
    CHECK(status_of(asked, Needs::nothing) == 405);
  }
  web::Request head = request("w1", "Bearer secret-of-the-test");
  head.method = "HEAD";
  CHECK(status_of(head) == 200);
}

TEST_CASE("a parameter of a query is decoded, and what is no escape stays") {
  web::Request asked = request("w1");
  asked.target = "/api/process?a=1&name=%3Cscript%3E%&b";
  CHECK(asked.path() == "/api/process");
  CHECK(asked.parameter("name") == "<script>%");
  CHECK(asked.parameter("b").empty());
  CHECK(asked.parameter("script").empty());
}

TEST_CASE(
    "a token is read from a private file alone, and must be long enough to be none by chance") {
  const test::TemporaryDirectory directory;
  const auto file = directory.path() / "token";
  const auto write = [&](const std::string& text, std::filesystem::perms permissions) {
    std::ofstream(file) << text;
    std::filesystem::permissions(file, permissions);
  };
  using std::filesystem::perms;
  write("0123456789abcdef\n", perms::owner_read | perms::owner_write);
  CHECK(web::read_token(file.string()) == "0123456789abcdef");
  write("short\n", perms::owner_read | perms::owner_write);
  CHECK_THROWS_WITH_AS(web::read_token(file.string()), doctest::Contains("16 to 128"),
                       std::runtime_error);
  write("0123456789abcdef\n", perms::owner_read | perms::owner_write | perms::others_read);
  CHECK_THROWS_AS(web::read_token(file.string()), std::runtime_error);
  CHECK(web::new_token().size() == 32);
  CHECK(web::new_token() != web::new_token());
}

}  // namespace dpwa
