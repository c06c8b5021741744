#include "dpwa/node/contacts.h"

#include <doctest/doctest.h>

namespace dpwa {

TEST_CASE("a node that calls often is reported once, with its highest incarnation") {
  Contacts contacts;
  CHECK(contacts.add("w2", 5));
  for (int call = 0; call < 1000; ++call) CHECK_FALSE(contacts.add("w2", 7));
  CHECK_FALSE(contacts.add("w2", 6));
  CHECK_FALSE(contacts.add("w3", 0));
  CHECK(contacts.take() == std::map<std::string, std::uint64_t>{{"w2", 7}, {"w3", 0}});
  CHECK(contacts.take().empty());
  CHECK(contacts.add("w2", 5));
}

TEST_CASE("callers under ever new names do not pile up") {
  Contacts contacts;
  for (int call = 0; call < 5000; ++call) contacts.add(std::to_string(call), 1);
  CHECK_FALSE(contacts.add("0", 2));
  const auto waiting = contacts.take();
  CHECK(waiting.size() == Contacts::max_names);
  CHECK(waiting.at("0") == 2);
}

}  // namespace dpwa
