#pragma once

#include <array>
#include <filesystem>
#include <string_view>
#include <vector>

#include "dpwa/security/private_file.h"

namespace dpwa {

// The keys of a cluster. A node calls others with the first one and accepts all of them from
// callers. There are two while a key is being changed, otherwise one.
inline constexpr std::size_t most_keys = 2;
using Keys = std::vector<Key>;

// Parses a key file: one key on each line, as 64 hexadecimal digits, and comments that begin with
// '#'. The error begins with `file` and gives the line and the reason, but never the contents.
// Pure.
FileResult<Keys> parse_keys(std::string_view text, const std::filesystem::path& file);
SecretText key_file_text(const Keys& keys);

FileResult<Keys> read_key_file(const std::filesystem::path& file);

// A key from the random numbers of the system. Throws std::runtime_error when there are none.
Key new_key();

// The parts of a cluster key that TLS uses: a pre-shared key, and the identity with which a caller
// names it unencrypted. Both are derived from the key by HKDF-SHA256 (RFC 5869) with different
// labels, so the identity reveals nothing about the key. Pure.
struct PreSharedKey {
  Key secret;
  std::array<unsigned char, 16> identity{};

  bool is_named(const unsigned char* name, std::size_t bytes) const;
};
PreSharedKey derive(const Key& key);

}  // namespace dpwa
