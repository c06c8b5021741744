#include "dpwa/config/backends.h"

#include <doctest/doctest.h>

#include "dpwa/config/names.h"

using namespace dpwa;

TEST_CASE("the table of back ends has every one, in the order of the enumeration") {
  std::size_t index = 0;
  for (const BackendInfo& info : backends()) {
    CHECK(static_cast<std::size_t>(info.backend) == index++);
    CHECK(&backend_info(info.backend) == &info);
    const Config config = parse_cluster("nodes: [{name: w1, port: 24000}]\nbackend: " +
                                            std::string(config::name_of(info.backend)) + "\n",
                                        "cluster.yaml");
    CHECK(config.backend == info.backend);
  }
  CHECK(index == 4);
}

TEST_CASE("a back end that the build lacks is refused with the reason and those that it has") {
  CHECK(available_backends().ends_with("null"));
  for (const BackendInfo& info : backends()) {
    Config config;
    config.backend = info.backend;
    config.file = "some/cluster.yaml";
    config.backend_line = 3;
    if (info.absent.empty()) {
      CHECK_NOTHROW(require_backend(config));
      CHECK(available_backends().find(config::name_of(info.backend)) != std::string::npos);
    } else {
      CHECK_THROWS_WITH_AS(
          require_backend(config),
          ("some/cluster.yaml:3: backend: '" + std::string(config::name_of(info.backend)) + "' " +
           std::string(info.absent) + "; accepted: " + available_backends())
              .c_str(),
          ConfigError);
    }
  }
}
