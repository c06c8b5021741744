#include "adapters/collective/session_store.h"

#include <ATen/ops/full.h>
#include <doctest/doctest.h>

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <vector>

#include "adapters/collective/engine/operations.h"
#include "test/adapters/doctest_with_torch.h"
#include "test/support/eventually.h"
#include "test/support/meeting_members.h"

namespace dpwa::collective {
namespace {

using namespace std::chrono_literals;

struct Members : test::MeetingMembers {
  using MeetingMembers::MeetingMembers;

  c10::intrusive_ptr<SessionStore> store(std::size_t rank, std::chrono::milliseconds limit = 20s,
                                         const std::stop_token& stop = {}) const {
    return c10::make_intrusive<SessionStore>(
        std::make_shared<Meeting>(entries(rank), options(rank), stop), limit);
  }
};

std::string failure_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "none";
}

}  // namespace

TEST_CASE("what one member sets, all read") {
  const Members members(2);
  const auto first = members.store(0), second = members.store(1);
  CHECK_FALSE(second->check({"a"}));
  first->set("a", std::string("1"));
  second->set("b", std::string("2"));
  CHECK(second->get_to_str("a") == "1");
  CHECK(first->get_to_str("b") == "2");
  CHECK(first->check({"a", "b"}));
  CHECK_FALSE(first->check({"a", "c"}));
  first->multiSet({"c", "d"}, {{3}, {4}});
  CHECK(second->clone()->multiGet({"c", "d"}) == std::vector<SessionStore::Bytes>{{3}, {4}});
  second->wait({"a", "d"});
}

TEST_CASE("a wait in vain names the members that have not come") {
  const Members members(3);
  CHECK(failure_of([&] { members.store(1, 30ms)->get("a"); }) ==
        "ranks 0 ('w1'), 2 ('w3') have not come");
  for (const std::size_t rank : {0U, 2U}) members.store(rank)->set("b", std::string("2"));
  members.store(1)->wait({"b"});
  CHECK(test::eventually([&] {
    return failure_of([&] { members.store(1, 1ms)->get("a"); }) == "nobody has set 'a'";
  }));
}

TEST_CASE("a stopped store ends its waits, and tells nothing more") {
  const Members members(2);
  std::stop_source stop;
  const auto store = members.store(0, 1h, stop.get_token());
  auto waits =
      std::async(std::launch::async, [&] { return failure_of([&] { store->wait({"never"}); }); });
  stop.request_stop();
  REQUIRE(waits.wait_for(20s) == std::future_status::ready);
  CHECK(waits.get() == "given up");
  CHECK(failure_of([&] { store->set("a", std::string("1")); }) == "given up");
  CHECK_FALSE(store->check({"a"}));
}

TEST_CASE("what needs a server, or is too large, is refused in one line") {
  const Members members(1);
  const auto store = members.store(0);
  const std::string cannot = "the store of a group has no server, and so cannot ";
  CHECK(failure_of([&] { store->add("n", 1); }) == cannot + "count at 'n'");
  CHECK(failure_of([&] { store->compareSet("n", std::string(), std::string("1")); }) ==
        cannot + "compare 'n'");
  CHECK(failure_of([&] { store->deleteKey("n"); }) == cannot + "delete 'n'");
  CHECK(failure_of([&] { store->append("n", {1}); }) == cannot + "append to 'n'");
  CHECK(failure_of([&] { store->getNumKeys(); }) == cannot + "count its keys");
  CHECK(failure_of([&] { store->set("n", SessionStore::Bytes(1 << 20)); }) ==
        "the members of the group cannot be told 'n' of 1048576 bytes");
}

TEST_CASE("groups of each engine form over it") {
  for (const EngineKind kind : {EngineKind::dpwa, EngineKind::gloo}) {
    const Engine engine = make_engine(kind);
    CAPTURE(engine.name);
    const Members members(3);
    test::at_once(3, [&](std::size_t rank) {
      const auto group = ProcessGroup::form(engine, members.store(rank), members.options(rank));
      const auto mean = Operations(*group).allreduce("w", at::full({5}, 1.0 * rank));
      CHECK(mean[0].item<double>() == 1);
      group->leave(20s);
    });
  }
}

}  // namespace dpwa::collective
