#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "dpwa/base/time.h"
#include "dpwa/collectives/link_greeting.h"
#include "dpwa/collectives/link_listener.h"
#include "dpwa/collectives/link_socket.h"

namespace dpwa {
class Security;
}

namespace dpwa::collectives {

struct LinkOptions {
  std::uint64_t group = 0;                   // members of different groups never join up
  std::shared_ptr<const Security> security;  // null: plain TCP
  // By rank: the names that certificates must be for, where they are used; empty: any name of the
  // authority.
  std::vector<std::string> names;
  // For a caller, until it has proved that it is a member; then it is dropped.
  Duration greeting_time = std::chrono::seconds(5);
};

// The connections to another member.
struct MemberLinks {
  LinkSocket data;
  LinkSocket news;  // LinkNews alone
};

// Connects a member with all others. Every member calls those of lower ranks and answers those of
// higher ones. Strangers get nothing: a caller is admitted once it has proved the key or
// certificate of `security`, and shown the token that this member was given; it makes room for
// others where too many are not admitted yet. The port is closed at the end.
//
// `texts`: LinkListener::text() of all members, by rank. Blocks until all are connected; the result
// has none at the own rank. Throws GroupBroken, with the rank that is missing where it is known,
// after `limit`, when `stop` is requested, when a member does not listen or does not prove its
// identity. Any thread.
std::vector<std::optional<MemberLinks>> form_links(LinkListener listener,
                                                   const LinkOptions& options, int rank,
                                                   const std::vector<std::string>& texts,
                                                   Duration limit, const std::stop_token& stop);

}  // namespace dpwa::collectives
