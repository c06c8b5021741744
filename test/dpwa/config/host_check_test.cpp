#include "dpwa/config/host_check.h"

#include <doctest/doctest.h>

#include <cerrno>

#include "test/dpwa/config/scratch_file.h"

namespace dpwa {
namespace {

Config config_with(const std::string& congestion_control) {
  return parse_cluster("nodes: [{name: w1, port: 24000}]\ntransport:\n  congestion_control: " +
                           congestion_control + "\n",
                       "c.yaml");
}

}  // namespace

TEST_CASE("a congestion control that this host has not is refused where a node starts") {
  const auto problem = congestion_control_problem(config_with("renoo"));
  REQUIRE(problem.has_value());
  CHECK(
      problem->starts_with("c.yaml:3: transport.congestion_control: 'renoo' is not a congestion "
                           "control of this host, did you mean 'reno'? accepted: auto, "));
  CHECK_THROWS_AS(check_host(config_with("renoo")), ConfigError);
}

TEST_CASE("auto and what every Linux has are accepted") {
  CHECK_NOTHROW(check_host(config_with("auto")));
  CHECK_NOTHROW(check_host(config_with("reno")));
}

TEST_CASE("the refusal of a congestion control says what the host would accept") {
  CHECK(config::congestion_control_refusal("cubik", ENOENT, {"reno", "cubic"}, {"reno"}) ==
        "'cubik' is not a congestion control of this host, did you mean 'cubic'? accepted: auto, "
        "reno, cubic");
  CHECK(config::congestion_control_refusal("bbr", EPERM, {"reno", "bbr"}, {"reno"}) ==
        "'bbr' is not allowed on this host; accepted: auto, or one of reno (root adds to "
        "net.ipv4.tcp_allowed_congestion_control)");
}

}  // namespace dpwa
