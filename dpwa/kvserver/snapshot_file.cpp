#include "dpwa/kvserver/snapshot_file.h"

#include <algorithm>
#include <array>
#include <boost/endian/conversion.hpp>
#include <cstring>
#include <stdexcept>
#include <utility>
#include <variant>

#include "dpwa/base/checksum.h"
#include "dpwa/base/plain_text.h"
#include "dpwa/config/names.h"
#include "dpwa/wire/kv_messages.h"

namespace dpwa::kvserver {
namespace {

namespace endian = boost::endian;

constexpr std::string_view magic = "dpwa-kvs";
constexpr std::uint32_t version = 1;
constexpr std::size_t fixed_bytes = 56;
constexpr std::size_t crc_bytes = 4;
constexpr std::size_t max_name = 255;

// Magic and version, which are checked before the rest is read.
constexpr std::size_t start_bytes = 12;

unsigned char* at(std::vector<std::byte>& bytes, std::size_t offset) {
  return reinterpret_cast<unsigned char*>(bytes.data() + offset);
}

std::uint8_t number_of(KvstoreType type) {
  return static_cast<std::uint8_t>(static_cast<unsigned>(type) + 1);
}

// Appends `count` bytes of the source; the error says why that failed.
std::optional<std::string> append(SnapshotSource& source, std::vector<std::byte>& bytes,
                                  std::uint64_t count) {
  if (count > source.left) return "is cut off";
  const std::size_t before = bytes.size();
  bytes.resize(before + count);
  if (!source.fill(std::span(bytes).subspan(before))) return "cannot be read";
  source.left -= count;
  return std::nullopt;
}

SnapshotResult<kvstore::ShardEngine::Captured> slice_of(wire::Decoded<kvstore::Message> message,
                                                        const SnapshotHead& head) {
  if (!message) return "is damaged: " + message.error().detail;
  kvstore::Copy& copy = std::get<kvstore::Copy>(*message);
  const auto place =
      kvstore::slice_at(copy.slice.key, copy.spec.elements(), head.servers, copy.slice.index);
  if (!place || place->server != head.place)
    return "has a slice of another server, of key " + copy.slice.key.text();
  kvstore::ShardEngine::Captured slice{head.id.number, copy.slice, copy.spec, {}};
  auto state = kvstore::state_of(std::move(copy), place->elements.count);
  if (!state) return "has values or an optimizer that do not fit key " + slice.slice.key.text();
  slice.state = *std::move(state);
  return slice;
}

}  // namespace

std::vector<std::byte> encode_head(const SnapshotHead& head) {
  if (head.cluster.size() > max_name || head.server.size() > max_name) {
    throw std::invalid_argument("a name is too long for a snapshot");
  }
  std::vector<std::byte> bytes(fixed_bytes);
  std::memcpy(bytes.data(), magic.data(), magic.size());
  endian::store_little_u32(at(bytes, 8), version);
  endian::store_little_u32(at(bytes, 12), head.slices);
  endian::store_little_u64(at(bytes, 16), head.id.run);
  endian::store_little_u32(at(bytes, 24), head.id.number);
  *at(bytes, 28) = number_of(head.type);
  *at(bytes, 29) = head.merged ? 1 : 0;
  endian::store_little_u16(at(bytes, 30), head.servers);
  endian::store_little_u16(at(bytes, 32), head.place);
  endian::store_little_u16(at(bytes, 34), static_cast<std::uint16_t>(head.cluster.size()));
  endian::store_little_u16(at(bytes, 36), static_cast<std::uint16_t>(head.server.size()));
  endian::store_little_u64(at(bytes, 40), head.clock);
  endian::store_little_u64(at(bytes, 48), head.written_us);
  for (const std::string* name : {&head.cluster, &head.server}) {
    const auto text = std::as_bytes(std::span(*name));
    bytes.insert(bytes.end(), text.begin(), text.end());
  }
  const std::uint32_t crc = crc32c(bytes);
  bytes.resize(bytes.size() + crc_bytes);
  endian::store_little_u32(at(bytes, bytes.size() - crc_bytes), crc);
  return bytes;
}

void write_slice(const kvstore::ShardEngine::Captured& slice, std::uint32_t place,
                 const std::function<void(std::span<const std::byte>)>& write) {
  const kvstore::Message copy = kvstore::copy_of(slice.slice, slice.spec, slice.state);
  const wire::KvFrame frame = wire::encode(copy, place);
  write(frame.head);
  for (const std::span<const std::byte> part : frame.payload) write(part);
}

SnapshotResult<SnapshotHead> read_head(SnapshotSource& source) {
  std::vector<std::byte> bytes;
  if (auto problem = append(source, bytes, start_bytes)) return *std::move(problem);
  if (std::memcmp(bytes.data(), magic.data(), magic.size()) != 0) return "is no snapshot";
  if (const auto found = endian::load_little_u32(at(bytes, 8)); found != version) {
    return "has version " + std::to_string(found) + "; accepted: " + std::to_string(version);
  }
  if (auto problem = append(source, bytes, fixed_bytes - start_bytes)) return *std::move(problem);
  const std::size_t cluster = endian::load_little_u16(at(bytes, 34));
  const std::size_t server = endian::load_little_u16(at(bytes, 36));
  if (cluster > max_name || server > max_name) return "is damaged: a name is too long";
  if (auto problem = append(source, bytes, cluster + server + crc_bytes)) {
    return *std::move(problem);
  }
  const std::size_t checked = bytes.size() - crc_bytes;
  if (endian::load_little_u32(at(bytes, checked)) != crc32c(std::span(bytes).first(checked))) {
    return "is damaged: the checksum of its head is wrong";
  }
  SnapshotHead head;
  head.slices = endian::load_little_u32(at(bytes, 12));
  head.id = {endian::load_little_u64(at(bytes, 16)), endian::load_little_u32(at(bytes, 24))};
  const std::uint8_t type = *at(bytes, 28);
  const std::uint8_t merged = *at(bytes, 29);
  head.merged = merged == 1;
  head.servers = endian::load_little_u16(at(bytes, 30));
  head.place = endian::load_little_u16(at(bytes, 32));
  head.clock = endian::load_little_u64(at(bytes, 40));
  head.written_us = endian::load_little_u64(at(bytes, 48));
  const char* names = reinterpret_cast<const char*>(at(bytes, fixed_bytes));
  head.cluster.assign(names, cluster);
  head.server.assign(names + cluster, server);
  const bool known = type >= number_of(KvstoreType::dist_sync) &&
                     type <= number_of(KvstoreType::dist_ssp) && merged <= 1 &&
                     head.place < head.servers && head.id.number > 0 &&
                     endian::load_little_u16(at(bytes, 38)) == 0 && is_plain_text(head.cluster) &&
                     is_plain_text(head.server);
  if (!known) return "has an invalid head";
  head.type = static_cast<KvstoreType>(type - 1);
  return head;
}

std::optional<std::string> read_slices(
    SnapshotSource& source, const SnapshotHead& head,
    const std::function<void(kvstore::ShardEngine::Captured)>& take) {
  using wire::MessageType;
  const wire::TypeBound copies{MessageType::kv_copy, wire::max_kv_body_bytes(MessageType::kv_copy)};
  std::vector<std::byte> bytes;
  std::optional<kvstore::SliceId> last;
  for (std::uint32_t place = 0; place < head.slices; ++place) {
    bytes.clear();
    if (auto problem = append(source, bytes, wire::header_bytes)) return problem;
    const auto header =
        wire::decode_header(std::span(bytes).first<wire::header_bytes>(), 0, {&copies, 1});
    if (!header) return "is damaged: " + header.error().detail;
    if (header->type != MessageType::kv_copy || header->request_id != place) {
      return "is damaged: slice " + std::to_string(place) + " is another message";
    }
    bytes.clear();
    if (auto problem = append(source, bytes, header->body_bytes)) return problem;
    auto slice = slice_of(wire::decode_kv(header->type, bytes), head);
    if (!slice) return std::move(slice).error();
    if (last && slice->slice <= *last) return "has its slices out of order";
    last = slice->slice;
    take(*std::move(slice));
  }
  if (source.left > 0) return "has bytes after its end";
  return std::nullopt;
}

std::optional<std::string> foreign(const SnapshotHead& found, const SnapshotHead& own) {
  const auto differs = [](const char* what, const std::string& is, const std::string& should) {
    return std::string("is of ") + what + ' ' + is + ", not " + should;
  };
  if (found.cluster != own.cluster) {
    return differs("cluster", "'" + found.cluster + "'", "'" + own.cluster + "'");
  }
  if (found.server != own.server) {
    return differs("server", "'" + found.server + "'", "'" + own.server + "'");
  }
  const auto& words = config::kvstore_type_words;
  if (found.type != own.type)
    return differs("type", name_in(words, found.type), name_in(words, own.type));
  if (found.merged != own.merged) {
    return std::string("is of dist_ssp with ") +
           (found.merged ? "staleness 0, not above it" : "a staleness above 0, not 0");
  }
  if (found.servers != own.servers) {
    return "is of " + std::to_string(found.servers) + " servers, not " +
           std::to_string(own.servers);
  }
  if (found.place != own.place) {
    return "is of server number " + std::to_string(found.place + 1) + ", not number " +
           std::to_string(own.place + 1) + " in the order of the cluster file";
  }
  return std::nullopt;
}

}  // namespace dpwa::kvserver
