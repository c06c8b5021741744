#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "dpwa/base/time.h"
#include "dpwa/config/field.h"
#include "dpwa/config/names.h"
#include "dpwa/config/text.h"

namespace dpwa::config {

// How a value of one type and range is written in a cluster file. A test sets every key to the
// values of `bounds`, which load, and of `beyond`, which are refused; both as a file writes them.
template <class Value>
struct Format {
  std::function<Value(const Field&)> read;          // throws ConfigError
  std::function<std::string(const Value&)> print;   // exact
  std::function<std::string(const Value&)> show{};  // the same in larger units; none: as printed
  std::string accepted{};                           // in Markdown, for the key reference
  std::vector<std::string> bounds{};
  std::vector<std::string> beyond{};
  bool optional = false;  // an empty text stands for no value: the key is not printed
  bool quoted = false;    // printed between double quotes
};

Format<bool> boolean();
// Inclusive; an infinite bound is no bound.
Format<double> number(double minimum, double maximum);
Format<std::int64_t> whole(std::int64_t minimum, std::int64_t maximum, const std::string& what);
// Of at most 24 hours, in milliseconds or with a unit.
Format<Duration> duration_above_0();
Format<Duration> duration_from_0();
// In bytes or with a unit. `accepted`: the range in words.
Format<std::int64_t> size(std::int64_t minimum, std::int64_t maximum, const std::string& accepted,
                          std::int64_t multiple = 1);
// One of these words.
Format<std::string> one_of(const std::vector<std::string>& words);
// The same, where no value is a value too.
Format<std::string> none_or(Format<std::string> format);

template <class Value, std::size_t count>
Format<Value> choice(const Word<Value> (&words)[count]) {
  std::vector<std::string> names;
  for (const Word<Value>& word : words) names.emplace_back(word.name);
  const Format<std::string> named = one_of(names);
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
          .accepted = named.accepted,
          .bounds = named.bounds,
          .beyond = named.beyond};
}

// Values with a form of their own.
Format<std::string> cluster_name();
Format<Backend> backend();
Format<std::string> congestion_control();
Format<std::string> interpolation_method();
Format<std::string> secret_path();  // relative to the cluster file; absolute once read
Format<std::string> log_path();

}  // namespace dpwa::config
