#pragma once

#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "dpwa/config/formats.h"
#include "dpwa/config/keys.h"

// What the rows of the table of keys are made with: In(...).key(name, member, format, comment).

namespace dpwa::config {

inline constexpr double unbounded = std::numeric_limits<double>::infinity();

template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;

// A member of the configuration, as the format of the file has it: an integer of another width, or
// a value that need not be there. None: nothing to print.
template <class Value, class Stored>
std::optional<Value> formatted(const Stored& stored) {
  if constexpr (is_optional<Stored>) {
    return stored ? std::optional<Value>(static_cast<Value>(*stored)) : std::nullopt;
  } else if constexpr (std::is_same_v<Stored, Value>) {
    return stored;
  } else {
    return static_cast<Value>(stored);
  }
}

template <class Stored, class Value>
void store(Stored& stored, Value value) {
  if constexpr (is_optional<Stored>) {
    stored = static_cast<typename Stored::value_type>(value);
  } else if constexpr (std::is_same_v<Stored, Value>) {
    stored = std::move(value);
  } else {
    stored = static_cast<Stored>(value);
  }
}

// Makes the keys of one struct within Config, reached by these members: In(&Config::gossip) makes
// those of GossipConfig.
template <class... Members>
class In {
 public:
  explicit In(Members... members) : members_(members...) {}

  template <class Member, class Value>
  Key key(std::string name, Member member, const Format<Value>& format, std::string comment,
          KeyDetails details = {}) const {
    const auto place = [members = members_, member](auto& config) -> auto& {
      return std::apply([&](auto... each) -> auto& { return ((config.*....*each).*member); },
                        members);
    };
    Key key;
    static_cast<KeyDetails&>(key) = std::move(details);
    key.name = std::move(name);
    key.comment = std::move(comment);
    if (key.accepted.empty()) key.accepted = format.accepted;
    key.bounds = format.bounds;
    key.beyond = format.beyond;
    key.quoted = format.quoted;
    key.read = [place, read = format.read, line = key.line](const Field& field, Config& config) {
      store(place(config), read(field));
      if (line != nullptr) line->write(config) = field.line();
    };
    key.print = [place, print = format.print,
                 optional = format.optional](const Config& config) -> std::optional<std::string> {
      const auto value = formatted<Value>(place(config));
      if (!value) return std::nullopt;
      std::string text = print(*value);
      if (optional && text.empty()) return std::nullopt;
      return text;
    };
    key.copy = [place, line = key.line](const Config& from, Config& to) {
      place(to) = place(from);
      if (line != nullptr) line->write(to) = line->read(from);
    };
    key.same = [place](const Config& a, const Config& b) { return place(a) == place(b); };
    const Config defaults;
    const auto value = formatted<Value>(place(defaults));
    if (value) key.default_value = format.show ? format.show(*value) : format.print(*value);
    return key;
  }

 private:
  std::tuple<Members...> members_;
};

template <class... Members>
In(Members...) -> In<Members...>;

template <auto... members>
inline constexpr LinePlace line_at{[](const Config& config) { return (config.*....*members); },
                                   [](Config& config) -> int& { return (config.*....*members); }};

// gossip_keys.cpp: the sections `gossip` and those inside it.
KeySection gossip_keys();
KeySection flow_control_keys();
KeySection firewall_keys();
KeySection membership_keys();

}  // namespace dpwa::config
