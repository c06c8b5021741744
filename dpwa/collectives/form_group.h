#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "dpwa/base/time.h"
#include "dpwa/collectives/group.h"

namespace dpwa {
class Security;
}

namespace dpwa::collectives {

struct GroupTerms {
  int rank = 0;
  std::uint64_t group = 0;                   // members of different groups never join up
  std::string own_address;                   // by which the others reach this member
  std::shared_ptr<const Security> security;  // of connections between hosts; null: none
  std::vector<std::string> names;            // by rank, as LinkOptions has them
  bool same_host = true;                     // whether memory is shared on one host
  Duration limit{};
  std::stop_token stop{};
  // Called on another thread once the group is broken by another member.
  std::function<void()> on_broken;
  // Tells all members what this one says, in one line, and gives what each said, by rank. By means
  // that strangers do not read.
  std::function<std::vector<std::string>(const std::string& own)> exchange;
};

struct FormedGroup {
  std::unique_ptr<Group> group;
  // Memory from which an all-reduce takes numbers without a copy; null: there is none.
  std::function<std::shared_ptr<std::byte>(std::size_t bytes)> allocate;
  std::string setting;  // how the members are connected, for people
};

// Who shares memory with others.
struct Sharing {
  std::size_t hosts = 0;  // whose members do
  std::size_t alone = 0;  // members that do not, of which hosts they may be
};
// How the members are connected, for people. Pure.
std::string setting_words(const Sharing& sharing, bool secured);

// Connects all members: through lent memory on one host, through TCP or TLS between hosts. All call
// it. Throws std::exception, GroupBroken among others.
FormedGroup form_group(const GroupTerms& terms);

}  // namespace dpwa::collectives
