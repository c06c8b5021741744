#include <algorithm>

#include "dpwa/config/sections.h"
#include "dpwa/config/text.h"

namespace dpwa::config {
namespace {

constexpr std::int64_t smallest_chunk = 4 * 1024;
constexpr std::int64_t largest_chunk = 16 * 1024 * 1024;
constexpr std::int64_t chunk_alignment = 64;

Codec read_encoding(const Field& field) {
  const std::string name = field.choice({"fp32", "fp16", "bf16", "int8"});
  for (const Codec codec : {Codec::fp16, Codec::bf16, Codec::int8}) {
    if (name == name_of(codec)) return codec;
  }
  return Codec::raw;
}

// The kernel's names of congestion controls are at most 15 such characters.
std::string read_congestion_control(const Field& field) {
  const std::string accepted = "auto, or a name of the kernel such as cubic, reno, bbr";
  const std::string name = field.text(accepted);
  const bool plausible =
      !name.empty() && name.size() <= 15 && std::all_of(name.begin(), name.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
      });
  if (!plausible) field.fail_type("a congestion control", accepted);
  return name;
}

std::uint32_t read_chunk_bytes(const Field& field) {
  const std::string accepted = "a multiple of 64 from 4KiB to 16MiB";
  const std::int64_t bytes = field.size_bytes(smallest_chunk, largest_chunk, accepted);
  if (bytes % chunk_alignment != 0) {
    field.fail(shown(field.text()) + " is not a multiple of 64 bytes; accepted: " + accepted);
  }
  return static_cast<std::uint32_t>(bytes);
}

std::uint32_t read_count(const Field& field) {
  return static_cast<std::uint32_t>(field.integer(1, 65535, "a count"));
}

}  // namespace

const std::vector<std::string>& transport_keys() {
  static const std::vector<std::string> keys = {"same_host",
                                                "encoding",
                                                "congestion_control",
                                                "chunk_bytes",
                                                "checksum",
                                                "max_connections",
                                                "max_connections_per_address",
                                                "max_connections_per_peer",
                                                "max_replies",
                                                "max_requests_per_second"};
  return keys;
}

void read_transport(const Section& section, TransportConfig& transport) {
  section.accept_only(transport_keys());
  if (const Field* field = section.find("same_host"))
    transport.same_host = field->choice({"auto", "off"}) == "auto";
  if (const Field* field = section.find("encoding")) transport.encoding = read_encoding(*field);
  if (const Field* field = section.find("congestion_control")) {
    transport.congestion_control = read_congestion_control(*field);
    transport.congestion_control_line = field->line();
  }
  if (const Field* field = section.find("chunk_bytes"))
    transport.chunk_bytes = read_chunk_bytes(*field);
  if (const Field* field = section.find("checksum"))
    transport.checksum = field->choice({"on", "off"}) == "on";
  if (const Field* field = section.find("max_connections"))
    transport.max_connections = read_count(*field);
  if (const Field* field = section.find("max_connections_per_address"))
    transport.max_connections_per_address = read_count(*field);
  if (const Field* field = section.find("max_connections_per_peer"))
    transport.max_connections_per_peer = read_count(*field);
  if (const Field* field = section.find("max_replies")) transport.max_replies = read_count(*field);
  if (const Field* field = section.find("max_requests_per_second"))
    transport.max_requests_per_second =
        static_cast<std::uint32_t>(field->integer(0, 1000000, "a rate"));
}

}  // namespace dpwa::config
