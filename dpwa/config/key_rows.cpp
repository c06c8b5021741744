#include "dpwa/config/key_rows.h"

#include <cmath>
#include <filesystem>
#include <limits>

#include "dpwa/config/backends.h"
#include "dpwa/config/nodes.h"
#include "dpwa/config/seeds.h"
#include "dpwa/config/text.h"
#include "interpolation/registry.h"

namespace dpwa::config {
namespace {

std::string as_code(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "`" : ", `") + word + '`';
  return text;
}

Format<Duration> duration(bool zero_allowed) {
  return {.read = [zero_allowed](const Field& field) { return field.duration(zero_allowed); },
          .print = milliseconds_text,
          .accepted = zero_allowed ? "a duration" : "a duration above 0"};
}

// Text that `read` checks and that is printed as it is.
Format<std::string> text(std::function<std::string(const Field&)> read) {
  return {.read = std::move(read), .print = [](const std::string& value) { return value; }};
}

std::string read_secret_path(const Field& field) {
  const std::string accepted = "the path of a file; {name} in it stands for the node's name";
  const std::string written = field.path(accepted);
  if (written.empty()) field.fail_type("a path", accepted);
  const std::filesystem::path file(field.locations().file());
  return (std::filesystem::absolute(file).parent_path() / written).lexically_normal().string();
}

}  // namespace

Format<bool> boolean() {
  return {.read = [](const Field& field) { return field.boolean(); },
          .print = [](const bool& value) { return std::string(value ? "true" : "false"); },
          .accepted = "`true`, `false`"};
}

Format<double> number(double minimum, double maximum) {
  const std::string least = number_text(minimum);
  return {.read = [=](const Field& field) { return field.number(minimum, maximum); },
          .print = [](const double& value) { return number_text(value); },
          .accepted = std::isfinite(maximum) ? least + " to " + number_text(maximum)
                                             : "a number of at least " + least};
}

Format<std::int64_t> whole(std::int64_t minimum, std::int64_t maximum, const std::string& what) {
  const bool unbounded = maximum == std::numeric_limits<std::int64_t>::max();
  return {.read = [=](const Field& field) { return field.integer(minimum, maximum, what); },
          .print = [](const std::int64_t& value) { return std::to_string(value); },
          .accepted =
              std::to_string(minimum) + " to " + (unbounded ? "2⁶³ − 1" : std::to_string(maximum))};
}

Format<Duration> duration_above_0() {
  return duration(false);
}
Format<Duration> duration_from_0() {
  return duration(true);
}

Format<std::int64_t> size(std::int64_t minimum, std::int64_t maximum, const std::string& accepted) {
  return {.read = [=](const Field& field) { return field.size_bytes(minimum, maximum, accepted); },
          .print = [](const std::int64_t& value) { return std::to_string(value); },
          .show = [](const std::int64_t& value) { return size_text(value); },
          .accepted = accepted};
}

Format<std::string> one_of(const std::vector<std::string>& words) {
  Format<std::string> format = text([words](const Field& field) { return field.choice(words); });
  format.accepted = as_code(words);
  return format;
}

Format<std::string> none_or(Format<std::string> format) {
  format.optional = true;
  return format;
}

// It prints the names alone; print_nodes() writes the entries as YAML.
Format<std::vector<NodeEntry>> node_list() {
  return {.read = read_nodes,
          .print = [](const auto& nodes) { return setting_of(names_of(nodes)); },
          .accepted = "a list, at least one entry",
          .optional = true};
}

Format<std::vector<NodeEntry>> seed_list() {
  return {.read = read_seeds,
          .print = [](const auto& seeds) { return joined(texts_of(seeds)); },
          .accepted = "a list of `HOST` or `HOST:PORT`",
          .optional = true};
}

Format<std::string> cluster_name() {
  Format<std::string> format = text([](const Field& field) { return field.name(); });
  format.accepted = "a name";
  return format;
}

// An unquoted `backend: null` is YAML's null, and here the name of a back end. A file may name one
// that this build lacks: require_backend() refuses it with the reason.
Format<Backend> backend() {
  Format<Backend> format = choice(backend_words);
  format.read = [](const Field& field) {
    const std::string null = field.written_null();
    const std::string name = null.empty() ? field.text(available_backends()) : null;
    for (const Word<Backend>& word : backend_words) {
      if (name == word.name) return word.value;
    }
    field.fail(unknown_word(name, available_names()));
  };
  return format;
}

// The methods are those that are registered when the file is read.
Format<std::string> interpolation_method() {
  Format<std::string> format = one_of(interpolation_registry().names());
  format.read = [](const Field& field) { return field.choice(interpolation_registry().names()); };
  format.accepted += ", or one that the program registers";
  return format;
}

Format<std::string> secret_path() {
  Format<std::string> format = text(read_secret_path);
  format.accepted = "a path";
  format.quoted = true;
  return none_or(format);
}

Format<std::string> log_path() {
  return {
      .read = [](const Field& field) { return field.path("a path, or \"\" for stderr"); },
      .print = [](const std::string& value) { return value; },
      .show = [](const std::string& value) { return value.empty() ? std::string("\"\"") : value; },
      .accepted = "a path"};
}

}  // namespace dpwa::config
