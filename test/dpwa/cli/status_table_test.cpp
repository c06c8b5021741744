#include <doctest/doctest.h>

#include <sstream>
#include <string>
#include <vector>

#include "dpwa/cli/node_status.h"
#include "dpwa/cli/text_table.h"
#include "test/support/temporary_directory.h"

// What dpwa status makes of the documents of nodes. Pure.
namespace dpwa {

TEST_CASE("a check takes nothing that another node says for the word of the one asked") {
  const auto node = [](const std::string& name, const char* document) {
    return cli::NodeStatus{name, "h:1", "alive", "", cli::Json::parse(document)};
  };
  CHECK(cli::status_problems(std::vector<cli::NodeStatus>{
            node("a", R"({"node": "b", "state": "training", "peers": [
                {"name": "b", "last_failure": "unusable"}]})"),
            node("b", R"({"node": "b", "state": "training", "peers": []})"),
            node("c", R"({"node": "\u001b[2J", "state": "training", "peers": []})")}) ==
        std::vector<std::string>{"a: answers as 'b'", "c: answers as '?[2J'"});
}

TEST_CASE("a check names every way in which a node can fail") {
  const auto node = [](const std::string& name, const char* document) {
    return cli::NodeStatus{name, "h:1", "alive", "", cli::Json::parse(document)};
  };
  const std::vector<cli::NodeStatus> nodes{
      node("a", R"({"state": "training", "loss": 0.5, "peers": [
          {"name": "b", "last_failure": null},
          {"name": "c", "last_failure": "unusable"}]})"),
      node("b", R"({"state": "training", "loss": 0.5, "peers": [
          {"name": "a", "last_failure": "unreachable"}, {"name": "c", "last_failure": "rejected"}]})"),
      node("c", R"({"state": "training", "loss": 0.5, "peers": []})"),
      node("d",
           R"({"state": "training", "loss": null, "peers": []})"),  // no program has to say one
      node("e", R"({"state": "stale", "loss": 0.5})"),
      node("f", R"({"state": "waiting", "loss": null, "peers": []})"),
      node("g", R"({"state": "finished", "loss": 0.5, "peers": [
          {"name": "a", "last_failure": "unreachable"}]})"),
      node("h", R"({"state": 3})"),
      node("i", R"({"state": "training", "loss": 0.5, "peers": [
          {"name": "a", "last_failure": "busy"}, {"name": "c", "last_failure": "timed_out"}]})"),
      {"j", "h:1", "dead", "no answer in time", cli::Json::object()}};
  CHECK(cli::status_problems(nodes) ==
        std::vector<std::string>{"b: reaches none of its peers",
                                 "c: its parameters are refused by a", "e: its trainer is gone",
                                 "h: answers, but without a status", "j: no answer in time"});
  CHECK(cli::status_problems({}).empty());
}

namespace {

void check_width(const std::string& table) {
  CAPTURE(table);
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) CHECK(line.size() <= 80);
}

}  // namespace

TEST_CASE("the status table fits a terminal of 80 columns, with numbers of a long run") {
  const auto document = cli::Json::parse(R"({"state": "training", "clock": 1234567.8,
      "loss": 12.3456, "pulls_ok": 1234567, "pulls_failed": 12345, "bytes_received": 123456700000,
      "bytes_served": 123456700000, "peers": [], "protocol_errors": 7, "members_unverified": 1024,
      "firewall": {"distance_clipped": 12345, "not_finite": 3}})");
  std::ostringstream out;
  cli::print_status_table(
      {{"worker-1", "192.168.100.100:24000", "suspect", "", document, true},
       {"worker-2", "192.168.100.100:24000", "suspect", "no answer in time", {}},
       {"worker-3",
        "192.168.100.100:24000",
        "-",
        "has another cluster key than this process (security.key_file)",
        {}}},
      out);
  check_width(out.str());
  CAPTURE(out.str());
  CHECK(test::has(out.str(),
                  "\n"
                  "worker-1  training  1234567.8  12.3456  1234567   12345   123457  123457  0/0\n"
                  "    joined at 192.168.100.100:24000, member suspect, 7 errors, 12345 clipped,\n"
                  "    3 refused\n"
                  "worker-2  no answer in time; address 192.168.100.100:24000, member suspect\n"
                  "worker-3\n"
                  "    no answer: has another cluster key than this process (security.key_file);\n"
                  "    address 192.168.100.100:24000\n"));
}

TEST_CASE("nodes that step together are shown with rank, group, engine and what they averaged") {
  const auto node = [](const std::string& name, const char* document) {
    return cli::NodeStatus{name, "192.168.100.100:24000", "alive", "", cli::Json::parse(document)};
  };
  const std::vector<cli::NodeStatus> nodes{
      node("worker-1", R"({"state": "training", "clock": 1234567.8, "loss": 12.3456,
          "gradient_bytes": 123456700000, "collective": {"rank": 0, "size": 3, "epoch": 12,
          "engine": "gloo", "waits": true, "exchange": "gradients", "late": ["worker-3"]}})"),
      node("worker-2", R"({"state": "training", "collective": {"rank": 1, "size": 3, "epoch": 11,
          "engine": "gloo", "apart": true}})"),
      // As it begins, and one that says nothing that fits.
      node("worker-3", R"({"state": "joining", "collective": {"rank": null, "epoch": 0}})"),
      node("worker-4", R"({"state": "joining", "collective": 7})"),
      {"worker-5", "h:1", "dead", "no answer in time", cli::Json::object()}};
  std::ostringstream out;
  cli::print_status_table(nodes, out);
  const std::string table = out.str();
  CAPTURE(table);
  for (const char* shown : {"0 of 3  12     gloo    123457\n    waits for worker-3\n", "apart",
                            "worker-5  no answer in time; address h:1, member dead", "worker-4"})
    CHECK(test::has(table, shown));
  CHECK_FALSE(test::has(table, "pulls ok"));
  check_width(table);
}

TEST_CASE("workers of the parameter server are shown with their steps and bytes, not with pulls") {
  const auto node = [](const std::string& name, const char* document) {
    return cli::NodeStatus{name, "192.168.100.100:24000", "-", "", cli::Json::parse(document)};
  };
  const std::vector<cli::NodeStatus> nodes{
      node("worker-1", R"({"state": "training", "backend": "kvstore", "clock": 1234567.0,
          "loss": 12.3456, "bytes_received": 1, "kvstore": {"rank": 0, "size": 3,
          "outcome": "averaged", "waited_ms": 12345.67, "bytes_received": 123456700000,
          "bytes_sent": 7700000000, "dropped": 3, "not_finite": 2}})"),
      node("worker-5", R"({"state": "training", "backend": "kvstore",
          "kvstore": {"finishing": true}})"),
      node("worker-6", R"({"state": "training", "backend": "kvstore", "waits_for": "w2, w3",
          "kvstore": {"rank": 0}})"),
      // As it begins, and one that says nothing that fits.
      node("worker-2", R"({"state": "joining", "backend": "kvstore"})"),
      node("worker-3", R"({"state": "joining", "backend": "kvstore", "kvstore": [7]})"),
      {"worker-4", "h:1", "-", "no answer in time", cli::Json::object()}};
  std::ostringstream out;
  cli::print_status_table(nodes, out);
  const std::string table = out.str();
  CAPTURE(table);
  for (const char* shown :
       {"1234567  12.3456  0 of 3  averaged   12345.7  123457  7700\n    3 dropped, 2 not finite\n",
        "done, waits for others", "waits for w2, w3\n",
        "worker-4  no answer in time; address h:1\n", "worker-3"})
    CHECK(test::has(table, shown));
  for (const char* absent : {"pulls ok", "memory", "member"}) CHECK_FALSE(test::has(table, absent));
  check_width(table);
}

TEST_CASE("nodes that do not answer are shown in the columns of the back end of their file") {
  const std::vector<cli::NodeStatus> nodes{
      {"w1", "h:1", "-", "no answer in time", cli::Json::object()}};
  const auto first_line = [&](Backend backend) {
    std::ostringstream out;
    cli::print_status_table(nodes, out, backend);
    return out.str().substr(0, out.str().find('\n'));
  };
  CHECK(test::has(first_line(Backend::kvstore), "wait ms"));
  CHECK(test::has(first_line(Backend::collective), "MB averaged"));
  CHECK(test::has(first_line(Backend::gossip), "pulls ok"));
}

TEST_CASE("under the table stands how far the models are from their mean, where that is known") {
  const auto node = [](const std::string& name, const char* document) {
    return cli::NodeStatus{name, "h:1", "alive", "", cli::Json::parse(document)};
  };
  std::ostringstream out;
  cli::print_status_table({node("a", R"({"to_mean": {"distance": 3, "relative": 0.0123}})"),
                           node("b", R"({"to_mean": {"distance": 9, "relative": 0.25}})"),
                           node("c", R"({"to_mean": {"distance": 0}})"), node("d", "{}")},
                          out);
  CHECK(test::has(out.str(), "distance to the mean model: median 1.2 %, at most 25 % (b)\n"));
}

TEST_CASE("a text table lines its columns up and lets a short row run on") {
  cli::TextTable table({"a", "bb", "c"});
  table.add({"long", "x", "1"});
  table.add({"y", "everything that went wrong"});
  std::ostringstream out;
  table.print(out);
  CHECK(out.str() == "a     bb  c\nlong  x   1\ny     everything that went wrong\n");
}

TEST_CASE("a last cell that is too wide stands below its row, in lines between words") {
  cli::TextTable table({"a", "bb", "c"}, 16);
  table.add({"long", "x", "12345"});
  table.add({"long", "x", "1234567"});
  table.add({"y", "all that went wrong"});
  table.add({"z", "", "123456789012345 7"});
  std::ostringstream out;
  table.print(out);
  CHECK(out.str() ==
        "a     bb  c\nlong  x   12345\nlong  x\n    1234567\ny\n    all that\n    went wrong\n"
        "z\n    123456789012345\n    7\n");
}

TEST_CASE("a first cell with which the others would not fit stands above its row") {
  cli::TextTable table({"a", "bb", "c", "notes"}, 16);
  table.add({"a-long-name", "xx", "12345", "n"});
  table.add({"short", "x", "1", "all well"});
  table.add({"another-name", "does not answer"});
  std::ostringstream out;
  table.print(out);
  CHECK(out.str() ==
        "a      bb  c\na-long-name\n       xx  12345\n    n\nshort  x   1\n    all well\n"
        "another-name\n    does not\n    answer\n");
}

}  // namespace dpwa
