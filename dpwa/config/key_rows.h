#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "dpwa/base/time.h"
#include "dpwa/config/field.h"
#include "dpwa/config/keys.h"
#include "dpwa/config/names.h"
#include "dpwa/config/text.h"

namespace dpwa::config {

// How a value of one type and range is written in a cluster file.
template <class Value>
struct Format {
  std::function<Value(const Field&)> read;          // throws ConfigError
  std::function<std::string(const Value&)> print;   // exact
  std::function<std::string(const Value&)> show{};  // the same in larger units; none: as printed
  std::string accepted{};                           // in Markdown, for the key reference
  bool optional = false;  // an empty text stands for no value: the key is not printed
  bool quoted = false;    // printed between double quotes
};

Format<bool> boolean();
// Inclusive; an infinite bound is no bound.
Format<double> number(double minimum, double maximum);
Format<std::int64_t> whole(std::int64_t minimum, std::int64_t maximum, const std::string& what);
// A time of at most 24 hours, in milliseconds or with a unit.
Format<Duration> duration_above_0();
Format<Duration> duration_from_0();
// The same where no value is one, too.
template <class Integer>
Format<std::optional<Integer>> optional_whole(std::int64_t minimum, std::int64_t maximum,
                                              const std::string& what) {
  const auto number = whole(minimum, maximum, what);
  return {.read = [number](const Field& field) { return static_cast<Integer>(number.read(field)); },
          .print = [](const auto& value) { return value ? std::to_string(*value) : std::string(); },
          .accepted = number.accepted,
          .optional = true};
}
// In bytes or with a unit. `accepted`: the range in words.
Format<std::int64_t> size(std::int64_t minimum, std::int64_t maximum, const std::string& accepted);
// One of these words.
Format<std::string> one_of(const std::vector<std::string>& words);
// The same, but an empty value is accepted too.
Format<std::string> none_or(Format<std::string> format);

template <class Value, std::size_t count>
Format<Value> choice(const Word<Value> (&words)[count]) {
  const Format<std::string> named = one_of(names_in(words));
  const std::vector<Word<Value>> known(words, words + count);
  return {.read =
              [named, known](const Field& field) {
                const std::string name = named.read(field);
                for (const Word<Value>& word : known) {
                  if (name == word.name) return word.value;
                }
                return known.front().value;
              },
          .print = [known](const Value& value) -> std::string {
            for (const Word<Value>& word : known) {
              if (word.value == value) return word.name;
            }
            return "";
          },
          .accepted = named.accepted};
}

// Values with a form of their own.
Format<std::vector<NodeEntry>> node_list();
Format<std::vector<NodeEntry>> seed_list();
Format<std::string> cluster_name();
Format<Backend> backend();
Format<std::string> interpolation_method();
Format<std::string> secret_path();  // relative to the cluster file; absolute once read
Format<std::string> log_path();

}  // namespace dpwa::config

// Makes the rows of the table of keys: In(...).key(name, member, format, meaning).

namespace dpwa::config {

inline constexpr double unbounded = std::numeric_limits<double>::infinity();

// Makes the keys of one struct within Config, reached by these members: In(&Config::gossip) makes
// those of GossipConfig. A member may be an integer of another width than the value of its format.
template <class... Members>
class In {
 public:
  explicit In(Members... members) : members_(members...) {}

  template <class Member, class Value>
  Key key(std::string name, Member member, const Format<Value>& format, std::string meaning,
          KeyDetails details = {}) const {
    const auto place = [members = members_, member](auto& config) -> auto& {
      return std::apply([&](auto... each) -> auto& { return ((config.*....*each).*member); },
                        members);
    };
    Key key;
    static_cast<KeyDetails&>(key) = std::move(details);
    key.name = std::move(name);
    key.meaning = std::move(meaning);
    if (key.accepted.empty()) key.accepted = format.accepted;
    key.quoted = format.quoted;
    key.read = [place, read = format.read](const Field& field, Config& config) {
      auto& stored = place(config);
      stored = static_cast<std::remove_reference_t<decltype(stored)>>(read(field));
      config.lines[field.key()] = field.line();
    };
    key.print = [place, print = format.print,
                 optional = format.optional](const Config& config) -> std::optional<std::string> {
      std::string text = print(static_cast<Value>(place(config)));
      if (optional && text.empty()) return std::nullopt;
      return text;
    };
    key.copy = [place](const Config& from, Config& to) { place(to) = place(from); };
    const Config defaults;
    const auto value = static_cast<Value>(place(defaults));
    key.default_value = format.show ? format.show(value) : format.print(value);
    return key;
  }

 private:
  std::tuple<Members...> members_;
};

template <class... Members>
In(Members...) -> In<Members...>;

// gossip_keys.cpp: the sections `gossip` and those inside it.
KeySection gossip_keys();
KeySection firewall_keys();
KeySection membership_keys();
// kvstore_keys.cpp: the sections `kvstore` and those inside it.
KeySection kvstore_keys();
KeySection kvstore_compression_keys();
KeySection kvstore_snapshots_keys();

}  // namespace dpwa::config
