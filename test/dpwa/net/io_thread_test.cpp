#include <doctest/doctest.h>
#include <openssl/err.h>

#include <boost/asio/post.hpp>
#include <csignal>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>

#include "dpwa/base/invariant.h"
#include "dpwa/base/thread_failure.h"
#include "dpwa/base/threads.h"
#include "dpwa/net/greetings.h"
#include "dpwa/net/io_thread.h"
#include "dpwa/net/statements.h"
#include "dpwa/net/tls_failure.h"
#include "test/dpwa/net/conversation.h"
#include "test/dpwa/net/pulling_node.h"
#include "test/dpwa/net/served_node.h"
#include "test/support/allocations.h"
#include "test/support/eventually.h"
#include "test/support/raw_socket.h"
#include "test/support/run_in_child.h"
#include "test/support/sanitized.h"

namespace dpwa {
namespace {

namespace asio = boost::asio;
using test::Ended;
using test::run_in_child;

MemberClaim claim(const std::string& name, std::uint16_t port) {
  return {name, {"127.0.0.1"}, port, 3, 0, MemberStatus::alive};
}

}  // namespace

TEST_CASE("a network thread goes on after a handler that fails by a defect") {
  asio::io_context io(1);
  int ran = 0;
  asio::post(io, [] { throw std::invalid_argument("an address that is not numeric"); });
  asio::post(io, [&ran] { ++ran; });
  net::run_io(io);
  CHECK(ran == 1);
}

TEST_CASE("memory refused to a network thread ends the process, with one line and its exit code") {
  const Ended child = run_in_child([] {
    asio::io_context io(1);
    asio::post(io, [] { throw std::bad_alloc(); });
    net::run_io(io);
  });
  CHECK(child.exit_code == 1);
  CHECK(child.errors.starts_with("out of memory in the network thread\n"));
}

TEST_CASE("an exception in a thread without a caller ends the process with a line of its own") {
  const auto end_by = [](const std::function<void()>& body) {
    return run_in_child([&] { run_or_end("the thread of the test", body); });
  };
  const Ended refused = end_by([] { throw std::bad_alloc(); });
  CHECK(refused.exit_code == 1);
  CHECK(refused.errors.starts_with("out of memory in the thread of the test\n"));
  const Ended failed = end_by([] { throw std::runtime_error("too many\nopen files"); });
  CHECK(failed.exit_code == 1);
  CHECK(failed.errors.starts_with("the thread of the test failed: too many open files\n"));
  CHECK(failed.errors.find("node: the thread of the test failed") != std::string::npos);  // the log
  const Ended unnamed = run_in_child([] {
    start_background_thread([] { throw std::runtime_error(std::string(5000, 'x')); }).join();
  });
  CHECK(unnamed.exit_code == 1);
  CHECK(unnamed.errors.starts_with("a background thread failed: xxx"));
}

TEST_CASE("memory refused to OpenSSL ends the process, and is no failure of the peer") {
  for (const bool established : {false, true}) {
    const Ended child = run_in_child([established] {
      net::tls_failure({nullptr, false, true, established, {}},
                       ERR_PACK(ERR_LIB_SSL, 0, ERR_R_MALLOC_FAILURE));
    });
    CHECK(child.exit_code == 1);
    CHECK(child.errors.starts_with("out of memory in the network thread\n"));
  }
}

TEST_CASE("memory refused anywhere in taking a connection ends the process, and nothing else") {
  int refusals = 0;
  bool refused = true;
  for (std::uint64_t skipped = 0; refused && skipped < 200; ++skipped) {
    CAPTURE(skipped);
    const Ended child = run_in_child([skipped] {
      test::ServedNode node;
      test::RawSocket caller(node.port());
      test::refuse_one(skipped);
      test::introduce(caller);  // or it waits for an answer until the end of the process
    });
    refused = child.exit_code == 1;
    if (!refused) CHECK(child.exit_code == 0);
    refusals += refused ? 1 : 0;
  }
  CHECK_FALSE(refused);
  CHECK(refusals > 5);
}

TEST_CASE("an object of one network thread is not used by another thread") {
  const Ended child = run_in_child([] {
    net::IoThread owner;
    owner.check();
    owner.check();
    std::thread([&owner] { owner.check(); }).join();
  });
  CHECK(
      (test::sanitized ? child.signal == SIGABRT : child.exit_code == broken_invariant_exit_code));
  CHECK(child.errors.find("an object of an I/O thread is used by this thread alone") !=
        std::string::npos);
}

TEST_CASE("a pull that fails by a defect of this node costs that pull alone") {
  const auto members = [](const MemberClaim& self, const MemberClaim& other) {
    return std::make_unique<Members>(self, std::vector{other}, MembershipOptions{}, 1);
  };
  test::ServedNode peer(16, {}, {}, true, nullptr, members(claim("w1", 1), claim("w2", 1)));
  // A claim without a port cannot be encoded; no file gives one.
  test::PullingNode node({{"w1", {"127.0.0.1"}, peer.port()}}, 16, 1, true, nullptr,
                         test::plain_memory, members(claim("w2", 0), claim("w1", peer.port())));
  for (int pull = 0; pull < 3; ++pull) CHECK(node.pull().outcome == Outcome::unreachable);
}

namespace {

using namespace std::chrono_literals;
using test::PullingNode;

}  // namespace

TEST_CASE("the wait for greetings ends with the last of their work, however that ends") {
  const auto greetings = std::make_shared<Greetings>(2);
  auto work = Greetings::begin(greetings);
  auto more = work;
  Greeted answer;
  answer.asked = true;
  work->put(1, answer);
  work->put(7, answer);  // of a peer that came later
  work.reset();
  more.reset();  // lost, without an answer
  const auto answers = greetings->wait(test::patience);
  REQUIRE(answers.size() == 2);
  CHECK_FALSE(answers[0].asked);
  CHECK(answers[1].asked);
}

TEST_CASE("the wait for greetings is bounded, and what comes later changes nothing") {
  const auto greetings = std::make_shared<Greetings>(1);
  const auto work = Greetings::begin(greetings);
  const auto answers = greetings->wait(1ms);
  work->put(0, {});
  CHECK_FALSE(answers.at(0).asked);
}

TEST_CASE("a stopped client greets no peer and returns at once") {
  PullingNode node({{"w1", {"127.0.0.1"}, 1}});
  node.stop();
  const auto greeted = node.client().greet_all(std::chrono::hours(1));
  REQUIRE(greeted.size() == 1);
  CHECK_FALSE(greeted[0].asked);
}

namespace {

std::map<std::string, std::uint16_t> take(Statements& statements) {
  std::map<std::string, std::uint16_t> heard;
  statements.take([&heard](const std::string& peer, Statements::Statement statement) {
    heard[peer] = statement.taken;
  });
  return heard;
}

}  // namespace

TEST_CASE("the last statement of each peer is heard, once") {
  Statements statements;
  statements.put("w1", {.incarnation = 1, .taken = 10});
  statements.put("w2", {.incarnation = 1, .taken = 20});
  statements.put("w1", {.incarnation = 1, .taken = 30});
  CHECK(take(statements) == std::map<std::string, std::uint16_t>{{"w1", 30}, {"w2", 20}});
  CHECK(take(statements).empty());
}

TEST_CASE("a value that is repeated in a peer's name does not hide what the peer states") {
  Statements statements;
  constexpr std::uint16_t lie = 12345;
  for (const std::uint16_t taken : {lie, lie, std::uint16_t{10}, lie, lie, std::uint16_t{20}, lie})
    statements.put("w1", {.incarnation = 1, .taken = taken});
  std::vector<std::uint16_t> heard;
  statements.take([&heard](const std::string&, Statements::Statement statement) {
    heard.push_back(statement.taken);
  });
  CHECK(heard == std::vector<std::uint16_t>{lie, 10, lie, 20, lie});
  for (std::uint16_t taken = 0; taken < 100; ++taken)
    statements.put("w1", {.incarnation = 1, .taken = taken});
  heard.clear();
  statements.take([&heard](const std::string&, Statements::Statement statement) {
    heard.push_back(statement.taken);
  });
  CHECK(heard.size() < 10);
  CHECK(heard.back() == 99);
}

TEST_CASE("of more peers than there is room for, the others are heard later") {
  Statements statements;
  for (std::size_t i = 0; i < Statements::max_names; ++i)
    statements.put("w" + std::to_string(i), {.incarnation = 1, .taken = 1});
  statements.put("late", {.incarnation = 1, .taken = 2});
  CHECK(take(statements).size() == Statements::max_names);
  statements.put("late", {.incarnation = 1, .taken = 3});
  CHECK(take(statements) == std::map<std::string, std::uint16_t>{{"late", 3}});
}

}  // namespace dpwa
