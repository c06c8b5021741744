#include "dpwa/gossip/gossip_status.h"

#include <doctest/doctest.h>

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>

#include "test/dpwa/net/pulling_node.h"
#include "test/support/vector_cluster.h"

namespace dpwa {
namespace {

constexpr TimePoint now{std::chrono::hours(10)};

// A name of 255 bytes, which JSON writes as 510.
std::string worst_name(std::size_t number) {
  std::string name = std::to_string(number);
  return name + std::string(wire::max_name_bytes - name.size(), '"');
}

MemberClaim claim(const std::string& name, std::uint64_t incarnation) {
  return {name,
          {"2001:0db8:1111:2222:3333:4444:5555:6666"},
          65535,
          incarnation,
          wire::max_refutation,
          MemberStatus::alive};
}

struct Observed {
  explicit Observed(const std::vector<std::string>& seeds) : local(with(seeds)) {}

  nlohmann::json document() {
    const PeerTable table(local.peers, {}, {});
    const Firewall firewall({}, local.peers.size());
    const auto same_host = [this](PeerId) {
      during();
      return false;
    };
    text = gossip_status(local, table, firewall, ledger, same_host, sketch, now);
    return nlohmann::json::parse(text);
  }

  static LocalNode with(const std::vector<std::string>& seeds) {
    std::vector<MemberClaim> claims;
    for (const std::string& name : seeds) claims.push_back(claim(name, UINT64_MAX));
    return LocalNode("test", "w1", 7, seeds, test::vector_manifest(16), 4096, test::plain_memory,
                     true,
                     std::make_unique<Members>(claim("w1", 7), claims, MembershipOptions{}, 1));
  }

  LocalNode local;
  const PairLedger* ledger = nullptr;
  const ModelSketch* sketch = nullptr;
  std::string text;
  std::function<void()> during = [] {};  // called while a document is made
};

}  // namespace

TEST_CASE("a status fits into one message, whatever the names of the members") {
  constexpr std::size_t nodes = 2000;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < nodes; ++i) names.push_back(worst_name(i));
  Observed node(names);
  const auto document = node.document();
  CHECK_NOTHROW(wire::encode(wire::Status{node.text}, 1));
  for (const std::string key : {"peers", "members"}) {
    CAPTURE(key);
    const std::size_t listed = document.at(key).size();
    CHECK(listed > 300);
    CHECK(listed + document.at(key + "_omitted").get<std::size_t>() ==
          nodes + (key == "members" ? 1 : 0));
  }
  CHECK(document.at("members").at(0).at("name") == "w1");
  CHECK(document.at("peers").at(0).at("name") == worst_name(0));
}

TEST_CASE("a status has the sketch of the model in few digits, where there is one") {
  Observed node({});
  CHECK_FALSE(node.document().contains("sketch"));
  ModelSketch sketch;
  sketch.sums.fill(0.123456789);
  node.sketch = &sketch;
  const auto sums = node.document().at("sketch");
  CHECK(sums.size() == ModelSketch::size);
  CHECK(sums.at(ModelSketch::size - 1) == 0.1234568);
}

TEST_CASE("a status lists who is in the file or has answered, and counts the others") {
  Observed node({"w2"});
  MemberExchange told;
  told.claims = {claim("w2", UINT64_MAX)};
  for (int i = 0; i < 90; ++i) {
    MemberClaim ghost = claim("ghost" + std::to_string(i), 5);
    ghost.refutation = 0;
    ghost.port = static_cast<std::uint16_t>(1 + i);
    told.claims.push_back(ghost);
  }
  node.local.members->merge("w2", UINT64_MAX, told, "10.0.0.2");
  auto document = node.document();
  CHECK(document.at("members").size() == 2);
  CHECK(document.at("members_unverified") == 90);
  CHECK(document.at("members_omitted") == 0);
  node.local.members->reached("ghost7", 5);
  document = node.document();
  CHECK(document.at("members").size() == 3);
  CHECK(document.at("members").at(2).at("name") == "ghost7");
  CHECK(document.at("members_unverified") == 89);
  // One that joins tells of itself; that it does not answer there is found out.
  MemberExchange joins;
  joins.claims = {told.claims[9]};
  node.local.members->merge(told.claims[9].name, 5, joins, "10.0.0.3");
  CHECK(node.document().at("members").size() == 4);
  node.local.members->failed(told.claims[9].name);
  CHECK(node.document().at("members").size() == 3);
}

TEST_CASE(
    "a note of the back end adds a field to the status, or replaces one, until it is erased") {
  Observed node({"w2"});
  CHECK(node.document().at("loss").is_null());
  node.local.notes.set("loss", "0.5");
  node.local.notes.set("waits_for", R"("w2")");
  CHECK(node.document().at("loss") == 0.5);
  CHECK(node.document().at("waits_for") == "w2");
  node.local.notes.erase("waits_for");
  CHECK_FALSE(node.document().contains("waits_for"));
}

TEST_CASE("a status has the account of every peer, in pulls, and the chance that it is asked") {
  Observed node({"w2", "w3"});
  CHECK(node.document().at("ledger_passed_over").is_null());
  CHECK(node.document().at("peers").at(0).at("ledger_balance").is_null());
  PairLedger ledger(0.5);
  node.ledger = &ledger;
  for (int pull = 0; pull < 4; ++pull) ledger.took(0, 5, 1);
  auto document = node.document();
  CHECK(document.at("peers").at(0).at("ledger_balance") == -4);
  CHECK(document.at("peers").at(0).at("ledger_chance") == 0.5);
  CHECK(document.at("peers").at(1).at("ledger_balance") == 0);
  CHECK(document.at("peers").at(1).at("ledger_chance") == 1);
  CHECK(document.at("ledger_passed_over") == 0);
  for (int pull = 0; pull < 4; ++pull) ledger.took(0, 5, 1);
  document = node.document();
  CHECK(document.at("peers").at(0).at("ledger_balance") == -6);
  CHECK(document.at("ledger_passed_over") == 1);
}

TEST_CASE("a trainer publishes as often as it likes while a status is made") {
  Observed node({"w2"});
  SnapshotStore& store = node.local.store;
  std::uint64_t version = 0;
  const auto publish = [&] {
    auto writer = store.begin();
    if (!writer) return;
    Progress progress;
    progress.version = ++version;
    store.publish(std::move(*writer), progress);
  };
  publish();
  const auto read_elsewhere = store.latest();  // leaves two buffers of three
  publish();
  node.during = [&] {
    for (int i = 0; i < 3; ++i) publish();
  };
  CHECK(node.document().at("published") == 2);
  CHECK(node.document().at("published") == 5);
  CHECK(store.skipped() == 0);
}

}  // namespace dpwa
