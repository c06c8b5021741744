#include "dpwa/collectives/link_former.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "dpwa/collectives/group.h"
#include "dpwa/collectives/remote_group.h"
#include "dpwa/config/config.h"
#include "test/dpwa/collectives/tcp_members.h"
#include "test/support/certificates.h"
#include "test/support/eventually.h"
#include "test/support/raw_socket.h"

namespace dpwa::collectives {
namespace {

using test::opened;
using test::RawSocket;
using test::TcpMembers;

struct Outcome {
  bool connected = false;
  int lost = -2;
  std::string what;
};

// What became of each member; those that are connected leave once all have met.
std::vector<Outcome> run(TcpMembers& members) {
  std::vector<Outcome> outcomes(static_cast<std::size_t>(members.size()));
  members.run(
      [&](std::unique_ptr<TcpLinks> links) {
        RemoteGroup group(std::move(links));
        group.barrier();
        outcomes[static_cast<std::size_t>(group.rank())].connected = true;
      },
      [&](int rank, const GroupBroken& broken) {
        outcomes[static_cast<std::size_t>(rank)] = {false, broken.lost(), broken.what()};
      });
  return outcomes;
}

bool all_connected(const std::vector<Outcome>& outcomes) {
  for (const Outcome& outcome : outcomes) {
    if (!outcome.connected) return false;
  }
  return true;
}

std::uint16_t port_of(const TcpMembers& members, std::size_t rank) {
  return members.listeners[rank].address().port;
}

std::string said_to(RawSocket& stranger) {
  std::string said;
  for (auto next = stranger.read(1); next; next = stranger.read(1))
    said += static_cast<char>(next->front());
  return said;
}

LinkGreeting greeting_to(const TcpMembers& members, std::size_t called) {
  LinkGreeting greeting;
  greeting.caller = static_cast<std::uint16_t>(members.size() - 1);
  greeting.called = static_cast<std::uint16_t>(called);
  greeting.size = static_cast<std::uint16_t>(members.size());
  greeting.token = members.listeners[called].address().token;
  return greeting;
}

TEST_CASE("strangers with and without words get nothing, and hold nobody up") {
  for (const bool secure : {false, true}) {
    const test::SecretFolder folder;
    const Keys keys{new_key()};
    TcpMembers members(3);
    if (secure) {
      for (LinkOptions& options : members.options) options.security = opened(folder, keys);
    }
    std::vector<RawSocket> strangers;
    for (int i = 0; i < 40; ++i) {
      strangers.emplace_back(port_of(members, 0));
      if (i % 4 == 1)
        strangers.back().send(
            "GET / HTTP/1.1\r\nHost: here, and more than 64 bytes "
            "of words that are no greeting\r\n\r\n");
      if (i % 4 == 2) strangers.back().send("dpwalnk1");
      if (i % 4 == 3) strangers.back().send(LinkGreeting().encode());
    }
    const auto port = port_of(members, 0);
    CHECK(all_connected(run(members)));
    for (RawSocket& stranger : strangers) {
      // A TLS node tells a caller in the clear so, by a REJECT.
      const std::string said = said_to(stranger);
      if (!secure) CHECK(said.empty());
    }
    CHECK_THROWS_AS(RawSocket{port}, std::runtime_error);  // nobody listens any more
  }
}

TEST_CASE("a flood of silent strangers makes room for the members") {
  TcpMembers members(2);
  std::vector<RawSocket> strangers;
  for (int i = 0; i < 200; ++i) strangers.emplace_back(port_of(members, 0));
  CHECK(all_connected(run(members)));
}

TEST_CASE("a stranger that says nothing is dropped after its time") {
  TcpMembers members(2);
  members.options[0].greeting_time = std::chrono::milliseconds(50);
  RawSocket stranger(port_of(members, 0));
  LinkListener late = std::exchange(members.listeners[1], LinkListener("127.0.0.1"));
  std::atomic<bool> dropped = false;
  test::at_once(2, [&](std::size_t rank) {
    if (rank == 1) {
      dropped = said_to(stranger).empty();
      const auto links =
          connect_links(std::move(late), members.options[1], 1, members.texts, members.limit);
      return;
    }
    const auto links = connect_links(std::move(members.listeners[0]), members.options[0], 0,
                                     members.texts, members.limit);
  });
  CHECK(dropped);
}

TEST_CASE("a greeting with another group, view or token is a stranger's") {
  TcpMembers members(3);
  std::vector<LinkGreeting> greetings(5, greeting_to(members, 0));
  greetings[0].group = 1;
  greetings[1].called = 1;
  greetings[2].size = 4;
  greetings[3].caller = 3;
  greetings[4].token = new_key();
  std::vector<RawSocket> strangers;
  for (const LinkGreeting& greeting : greetings) {
    strangers.emplace_back(port_of(members, 0));
    strangers.back().send(greeting.encode());
  }
  CHECK(all_connected(run(members)));
  for (RawSocket& stranger : strangers) CHECK(said_to(stranger).empty());
}

TEST_CASE("members of different groups never join up") {
  TcpMembers members(2);
  members.options[1].group = 1;
  members.limit = std::chrono::milliseconds(200);
  const auto outcomes = run(members);
  CHECK_FALSE(outcomes[0].connected);
  CHECK_FALSE(outcomes[1].connected);
}

TEST_CASE("a member with another key gets no connection and is told why") {
  const test::SecretFolder folder, other_folder;
  TcpMembers members(2);
  members.options[0].security = opened(folder, {new_key()});
  members.options[1].security = opened(other_folder, {new_key()});
  const auto outcomes = run(members);
  CHECK_FALSE(outcomes[0].connected);
  CHECK_FALSE(outcomes[1].connected);
  CHECK(outcomes[1].lost == 0);
  CHECK(outcomes[1].what.find("has another cluster key") != std::string::npos);
}

TEST_CASE("a member without TLS and one with it do not join up") {
  const test::SecretFolder folder;
  for (const std::size_t secure : {0UL, 1UL}) {
    TcpMembers members(2);
    members.options[secure].security = opened(folder, {new_key()});
    const auto outcomes = run(members);
    CHECK_FALSE(outcomes[0].connected);
    CHECK_FALSE(outcomes[1].connected);
    CHECK(outcomes[1].lost == 0);
    CAPTURE(outcomes[1].what);
    const char* words = secure == 0 ? "is no member of this group" : "speaks no TLS 1.3";
    CHECK(outcomes[1].what.find(words) != std::string::npos);
  }
}

std::shared_ptr<const Security> with_certificate(const test::SecretFolder& folder,
                                                 const test::TestAuthority& authority,
                                                 const std::string& name) {
  authority.sign(folder, name, {name, ""});
  Config config;
  config.security.mode = "mtls";
  config.security.ca = authority.file();
  config.security.cert = folder.path(name + ".pem").string();
  config.security.key = folder.path(name + ".key").string();
  return std::make_shared<Security>(config, "", "");
}

TEST_CASE("certificates must be for the names of the members") {
  const test::SecretFolder folder;
  const test::TestAuthority authority(folder, "ca");
  const auto form = [&](std::vector<std::string> names, std::vector<std::string> certificates,
                        Duration limit) {
    TcpMembers members(static_cast<int>(names.size()));
    members.limit = limit;
    for (std::size_t rank = 0; rank < names.size(); ++rank) {
      members.options[rank].names = names;
      members.options[rank].security = with_certificate(folder, authority, certificates[rank]);
    }
    return run(members);
  };
  CHECK(all_connected(form({"w0", "w1", "w2"}, {"w0", "w1", "w2"}, test::patience)));
  const auto called = form({"w0", "w1"}, {"w9", "w1"}, test::patience);
  CHECK_FALSE(called[0].connected);
  CHECK_FALSE(called[1].connected);
  CHECK(called[1].what.find("shows a certificate for 'w9'") != std::string::npos);
  const auto caller = form({"w0", "w1"}, {"w0", "w9"}, std::chrono::milliseconds(300));
  CHECK_FALSE(caller[0].connected);
  CHECK_FALSE(caller[1].connected);
}

TEST_CASE("forming ends at once when it is stopped, or when a member does not listen") {
  {
    TcpMembers members(2);
    members.stop.request_stop();
    const auto outcomes = run(members);
    CHECK_FALSE(outcomes[0].connected);
    CHECK_FALSE(outcomes[1].connected);
  }
  TcpMembers members(2);
  LinkListener caller = std::exchange(members.listeners[1], LinkListener("127.0.0.1"));
  members.listeners.clear();
  try {
    form_links(std::move(caller), members.options[1], 1, members.texts, members.limit, {});
    FAIL("connected to nobody");
  } catch (const GroupBroken& broken) {
    CHECK(broken.lost() == 0);
    CHECK(std::string(broken.what()).find("refused") != std::string::npos);
  }
}

TEST_CASE("a member that goes once it is connected ends the forming of the others") {
  TcpMembers members(3);
  std::optional<RawSocket> one(std::in_place, port_of(members, 0));
  one->send(greeting_to(members, 0).encode());
  int lost = -2;
  test::at_once(2, [&](std::size_t rank) {
    if (rank == 1) {
      (void)one->read(LinkReply::bytes);
      return one.reset();
    }
    try {
      form_links(std::move(members.listeners[0]), members.options[0], 0, members.texts,
                 std::chrono::hours(1), {});
    } catch (const GroupBroken& broken) {
      lost = broken.lost();
    }
  });
  CHECK(lost == 2);
}

TEST_CASE("a text that is no address names its rank") {
  TcpMembers members(2);
  members.texts[1] = "nowhere";
  try {
    form_links(std::move(members.listeners[0]), members.options[0], 0, members.texts, members.limit,
               {});
    FAIL("connected to nobody");
  } catch (const GroupBroken& broken) {
    CHECK(broken.lost() == 1);
  }
}

TEST_CASE("an address that is not of this host is refused, with its name") {
  CHECK_THROWS_WITH_AS(LinkListener("192.0.2.1"), doctest::Contains("192.0.2.1"),
                       std::system_error);
}

}  // namespace
}  // namespace dpwa::collectives
