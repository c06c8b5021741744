#include "dpwa/observe/export_run.h"

#include <bit>
#include <boost/algorithm/string/replace.hpp>
#include <cstring>
#include <fstream>
#include <span>
#include <stdexcept>

#include "dpwa/base/atomic_file.h"
#include "dpwa/base/checksum.h"
#include "dpwa/observe/run_files.h"

namespace dpwa::observe {
namespace {

constexpr const char* columns[] = {
    "t",       "wall",      "step",         "loss",          "lr",         "clock",    "outcome",
    "peer",    "transport", "block",        "factor",        "staleness",  "distance", "clipped",
    "refused", "waited_ms", "step_ms",      "compute_ms",    "publish_ms", "blend_ms", "bytes",
    "sent",    "pulls_ok",  "pulls_failed", "test_accuracy", "test_loss"};

// Calls `take` with each line that is a JSON object.
template <class Take>
void each_record(const std::filesystem::path& run, const std::string& node, Take take) {
  for (const std::filesystem::path& file : metrics_files(run, node)) {
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);) {
      const Json record = Json::parse(line, nullptr, /*allow_exceptions=*/false);
      if (record.is_object()) take(record);
    }
  }
}

// A text in quotes, as it may have a comma; a number as it is in the file.
std::string cell(const Json& record, const char* key) {
  const auto value = record.find(key);
  if (value == record.end() || value->is_null()) return {};
  if (!value->is_string()) return value->dump();
  return '"' + boost::algorithm::replace_all_copy(value->get<std::string>(), "\"", "\"\"") + '"';
}

template <class Number>
std::string little_endian(Number number) {
  static_assert(std::endian::native == std::endian::little);
  std::string bytes(sizeof number, '\0');
  std::memcpy(bytes.data(), &number, sizeof number);
  return bytes;
}

// Fields of Protocol Buffers: a key of field number and kind, then the value.
std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

std::string bytes_field(std::uint64_t field, const std::string& bytes) {
  return varint(field << 3 | 2) + varint(bytes.size()) + bytes;
}

std::string masked_checksum(const std::string& bytes) {
  const std::uint32_t sum = crc32c(std::as_bytes(std::span(bytes)));
  return little_endian(((sum >> 15) | (sum << 17)) + 0xa282ead8U);
}

std::string record_of(const std::string& message) {
  const std::string length = little_endian(std::uint64_t{message.size()});
  return length + masked_checksum(length) + message + masked_checksum(message);
}

std::string wall_field(double wall) {
  return varint(1 << 3 | 1) + little_endian(wall);
}

}  // namespace

void write_csv(const std::filesystem::path& run, std::ostream& out) {
  const std::vector<std::string> nodes = nodes_of_run(run);
  out << "node";
  for (const char* const column : columns) out << ',' << column;
  out << '\n';
  for (const std::string& node : nodes) {
    each_record(run, node, [&](const Json& record) {
      out << node;
      for (const char* const column : columns) out << ',' << cell(record, column);
      out << '\n';
    });
  }
}

void write_tensorboard(const std::filesystem::path& run, const std::filesystem::path& out) {
  for (const std::string& node : nodes_of_run(run)) {
    std::filesystem::create_directories(out / node);
    AtomicFile file(out / node / "events.out.tfevents.0.dpwa", out / node / "events.tmp", 0666);
    file.write(record_of(wall_field(0) + bytes_field(3, "brain.Event:2")));
    each_record(run, node, [&](const Json& record) {
      std::vector<std::pair<std::string, float>> values;
      for (const auto& [key, value] : record.items()) {
        if (value.is_number() && key != "step" && key != "t" && key != "wall")
          values.emplace_back(key, value.get<float>());
      }
      // Files of older versions have no wall clock.
      const double wall = record.value("wall", record.value("t", 0.0));
      file.write(event_record(wall, record.value("step", std::int64_t{0}), values));
    });
    file.commit();
  }
}

std::string event_record(double wall, std::int64_t step,
                         const std::vector<std::pair<std::string, float>>& values) {
  std::string summary;
  for (const auto& [tag, value] : values) {
    const std::string number = varint(2 << 3 | 5) + little_endian(value);
    summary += bytes_field(1, bytes_field(1, tag) + number);
  }
  return record_of(wall_field(wall) + varint(2 << 3) + varint(static_cast<std::uint64_t>(step)) +
                   bytes_field(5, summary));
}

}  // namespace dpwa::observe
