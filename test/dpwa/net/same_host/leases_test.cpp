#include "dpwa/net/same_host/leases.h"

#include <doctest/doctest.h>

#include <chrono>
#include <limits>
#include <memory>
#include <vector>

namespace dpwa::same_host {
namespace {

using std::chrono::seconds;

// Three leases, of 1, 2 and 3 bytes, which are over after 1, 2 and 3 seconds.
struct Lent {
  Lent() {
    for (int i = 1; i <= 3; ++i) {
      memory.push_back(std::make_shared<int>(i));
      const auto number =
          leases.lend(memory.back(), static_cast<std::size_t>(i), TimePoint(seconds(i)));
      CHECK(number == static_cast<std::uint64_t>(i));
    }
  }
  std::vector<bool> held() const {
    std::vector<bool> all;
    for (const auto& each : memory) all.push_back(each.use_count() > 1);
    return all;
  }

  std::vector<std::shared_ptr<int>> memory;
  Leases leases;
};

TEST_CASE("memory is kept until all up to its number is given back") {
  Lent lent;
  CHECK(lent.leases.bytes() == 6);
  lent.leases.release(0);
  CHECK(lent.held() == std::vector{true, true, true});
  lent.leases.release(2);
  CHECK(lent.held() == std::vector{false, false, true});
  CHECK(lent.leases.bytes() == 3);
  lent.leases.release(1);  // once more
  CHECK(lent.held() == std::vector{false, false, true});
  lent.leases.release(std::numeric_limits<std::uint64_t>::max());
  CHECK(lent.held() == std::vector{false, false, false});
  CHECK(lent.leases.bytes() == 0);
  CHECK(lent.leases.lend(lent.memory[0], 1, TimePoint()) == 4);
  lent.leases.release(3);
  CHECK(lent.held() == std::vector{true, false, false});
}

TEST_CASE("leases are overdue once the time of the oldest is over") {
  Lent lent;
  CHECK_FALSE(lent.leases.overdue(TimePoint(seconds(0))));
  CHECK(lent.leases.overdue(TimePoint(seconds(1))));
  lent.leases.release(1);
  CHECK_FALSE(lent.leases.overdue(TimePoint(seconds(1))));
  CHECK(lent.leases.overdue(TimePoint(seconds(3))));
  lent.leases.release(3);
  CHECK_FALSE(lent.leases.overdue(TimePoint(seconds(3))));
}

}  // namespace
}  // namespace dpwa::same_host
