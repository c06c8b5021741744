#include "dpwa/group/group_node.h"

#include <doctest/doctest.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "dpwa/group/group_endpoint.h"
#include "dpwa/group/kept_file.h"
#include "dpwa/net/free_ports.h"
#include "test/support/eventually.h"
#include "test/support/temporary_directory.h"

// Processes of a group with real connections, in one process.
namespace dpwa::group {
namespace {

using namespace std::chrono_literals;
using members::ViewEngine;
using Standing = ViewEngine::Standing;
using SteadyClock = std::chrono::steady_clock;

Config config_of(std::size_t nodes) {
  Config config;
  config.cluster = "test";
  config.backend = Backend::collective;
  const auto ports = net::free_ports(nodes);
  for (std::size_t i = 0; i < nodes; ++i) {
    NodeEntry node;
    node.name = "w" + std::to_string(i + 1);
    node.port = ports[i];
    config.nodes.push_back(node);
  }
  return config;
}

struct Process {
  Process(Config of, const std::string& name, Settings terms = {{"nodes", "all"}}) {
    of.self = name;
    config = std::move(of);
    endpoint = group_endpoint(config, inbox);
    endpoint->start(10s);
    node = std::make_unique<GroupNode>(config, endpoint->local(), inbox, std::move(terms));
  }
  Standing standing() const { return node->state().standing; }
  std::size_t size() const { return node->state().view.members.size(); }

  Config config;
  std::shared_ptr<Inbox> inbox = std::make_shared<Inbox>();
  std::unique_ptr<Endpoint> endpoint;
  std::unique_ptr<GroupNode> node;
};

// A folder of this test alone takes the place of the user's.
class OwnRuntimeFolder {
 public:
  OwnRuntimeFolder() { ::setenv("XDG_RUNTIME_DIR", folder_.path().c_str(), 1); }
  ~OwnRuntimeFolder() { ::unsetenv("XDG_RUNTIME_DIR"); }
  const std::filesystem::path& path() const { return folder_.path(); }

 private:
  const test::TemporaryDirectory folder_;
};

}  // namespace

TEST_CASE("processes form a view, continue without one that ends, and admit it again") {
  const OwnRuntimeFolder folder;
  const Config config = config_of(3);
  std::vector<std::optional<Process>> all(3);
  for (std::size_t i = 0; i < 3; ++i) all[i].emplace(config, config.nodes[i].name);
  for (const auto& each : all)
    REQUIRE(test::eventually([&] { return each->standing() == Standing::member; }));
  const auto first = all[0]->node->state().view;
  CHECK(first.members.size() == 3);

  all[2].reset();
  REQUIRE(test::eventually([&] { return all[0]->size() == 2 && all[1]->size() == 2; }));
  CHECK(all[0]->node->state().peers.at("w3").refuses());
  // An operation completes in the latest view alone.
  CHECK_FALSE(all[0]->node->complete(first.number, 1));
  CHECK(all[0]->node->complete(all[0]->node->state().view.number, 1));

  all[2].emplace(config, "w3");
  REQUIRE(test::eventually([&] { return all[2]->standing() == Standing::joining; }));
  const auto number = all[2]->node->state().view.number;
  for (const auto& each : all) {
    REQUIRE(test::eventually([&] { return each->node->state().view.number == number; }));
    REQUIRE(each->node->begin_at(number, 1));
    each->node->note_state(1, 17);
  }
  CHECK(test::eventually([&] { return all[2]->standing() == Standing::member; }));
}

TEST_CASE("one that leaves is out of the view of the others, who need not suspect it") {
  const OwnRuntimeFolder folder;
  const Config config = config_of(2);
  Process first(config, "w1");
  Process second(config, "w2");
  REQUIRE(test::eventually([&] { return second.standing() == Standing::member; }));
  first.node->leave();
  CHECK(test::eventually([&] { return first.standing() == Standing::left; }));
  CHECK(test::eventually([&] { return second.size() == 1; }));
}

TEST_CASE("what one puts for a group is found by all, also by one that comes later") {
  const OwnRuntimeFolder folder;
  const Config config = config_of(3);
  const auto has = [](const std::shared_ptr<SharedEntries>& entries, const std::string& key) {
    return entries->wait(7, key, SteadyClock::now() + 10s, {}).has_value();
  };
  Process first(config, "w1");
  Process second(config, "w2");
  REQUIRE(first.node->entries()->put({7, "before", {1}}));
  CHECK(has(second.node->entries(), "before"));
  CHECK_FALSE(second.node->entries()->find(8, "before"));
  std::optional<Process> third(std::in_place, config, "w3");
  CHECK(has(third->node->entries(), "before"));
  REQUIRE(first.node->entries()->put({7, "after", {2}}));
  CHECK(has(third->node->entries(), "after"));
  REQUIRE(third->node->entries()->put({7, "of the third", {3}}));
  CHECK(has(first.node->entries(), "of the third"));
  CHECK(first.node->entries()->has_come(7, "w3"));
  CHECK_FALSE(first.node->entries()->has_come(7, "w2"));

  // It gets over the life of a node, but nothing new comes in.
  const auto left = third->node->entries();
  third.reset();
  CHECK(left->find(7, "after"));
  CHECK_FALSE(left->put({7, "late", {1}}));
  CHECK_FALSE(left->wait(7, "never", SteadyClock::now() + 1h, {}));
}

TEST_CASE("a wait for an entry ends in time, and when it is told to") {
  SharedEntries entries([](const members::Entry&) {});
  CHECK_FALSE(entries.wait(7, "a", SteadyClock::now() + 10ms, {}));
  std::stop_source stop;
  const auto waits = std::async(std::launch::async, [&] {
    return entries.wait(7, "a", SteadyClock::now() + 1h, stop.get_token());
  });
  stop.request_stop();
  CHECK(waits.wait_for(10s) == std::future_status::ready);
  CHECK(entries.put({7, "a", {1}}));
  CHECK_FALSE(entries.wait(7, "a", SteadyClock::now() + 1h, stop.get_token()));
}

TEST_CASE("what a process keeps is there for the next one of its name, once it has ended") {
  const OwnRuntimeFolder folder;
  members::Kept kept;
  kept.installed = {.run = 1, .number = 3, .members = {{{"w1", 1, 7}}}};
  kept.votes.push_back({.owner = {"w1", 1, 7}, .promised = {4, {"w1", 1, 7}}});
  {
    KeptFile file("w1");
    CHECK_FALSE(file.former());
    file.write(kept);
    // The former one lives.
    KeptFile other("w1");
    CHECK_FALSE(other.former());
    other.write({});
  }
  {
    KeptFile file("w1");
    REQUIRE(file.former());
    CHECK(*file.former() == kept);
    file.remove();
  }
  CHECK_FALSE(KeptFile("w1").former());
}

TEST_CASE("a file of another boot, or a damaged one, counts as none") {
  const OwnRuntimeFolder folder;
  members::Kept kept;
  kept.votes.push_back({.owner = {"w1", 1, 7}});
  KeptFile("w1").write(kept);
  const auto folders = std::filesystem::directory_iterator(folder.path());
  const auto file = folders->path() / "w1";
  const std::string whole = test::read_text(file);
  REQUIRE(whole.size() > 40);
  for (const std::size_t at : {std::size_t{0}, whole.size() / 2, whole.size() - 1}) {
    CAPTURE(at);
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    test::write_text(file, damaged);
    CHECK_FALSE(KeptFile("w1").former());
  }
  test::write_text(file, whole.substr(0, whole.size() - 3));
  CHECK_FALSE(KeptFile("w1").former());
  test::write_text(file, whole);
  CHECK(KeptFile("w1").former());
}

TEST_CASE("files that nobody has written for a week are removed, but not those in use") {
  const OwnRuntimeFolder folder;
  KeptFile in_use("w1");
  KeptFile("w2").write({});
  const auto own = std::filesystem::directory_iterator(folder.path())->path();
  for (const char* name : {"w1", "w2"}) {
    std::filesystem::last_write_time(
        own / name, std::filesystem::file_time_type::clock::now() - std::chrono::hours(24 * 8));
  }
  const KeptFile other("w3");
  CHECK(std::filesystem::exists(own / "w1"));
  CHECK_FALSE(std::filesystem::exists(own / "w2"));
}

TEST_CASE("a folder that others may write to is not used") {
  const OwnRuntimeFolder folder;
  members::Kept kept;
  kept.votes.push_back({.owner = {"w1", 1, 7}});
  KeptFile("w1").write(kept);
  const auto own = std::filesystem::directory_iterator(folder.path())->path();
  std::filesystem::permissions(own, std::filesystem::perms::all);
  CHECK_FALSE(KeptFile("w1").former());
}

}  // namespace dpwa::group
