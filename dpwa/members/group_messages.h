#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "dpwa/base/settings.h"
#include "dpwa/members/view_messages.h"

namespace dpwa::members {

// What the processes of a group tell one another beside the messages of views (group_engine.h).

// A sign of life, several times in a time that counts as silence.
struct Beat {
  Base base;
  bool waits = false;  // for the others, in an exchange
  bool operator==(const Beat&) const = default;
};
// Settings that have to be the same on all, for words on what differs: first on each connection.
struct Terms {
  Settings settings;
  bool operator==(const Terms&) const = default;
};

// What the sender has put into the store of a group (group_entries.h). Comes again on each new
// connection.
struct Entry {
  std::uint64_t group = 0;  // a hash of its number and members
  std::string key;
  std::vector<std::uint8_t> value;
  bool operator==(const Entry&) const = default;
};
inline constexpr std::size_t max_entry_key_bytes = 255;
inline constexpr std::size_t max_entry_bytes = 256 << 10;  // of a value

using GroupMessage = std::variant<Prepare, Promise, Accept, Accepted, Installed, AskView, Apply,
                                  Ready, Leave, Refuse, Beat, Terms, Entry>;

}  // namespace dpwa::members
