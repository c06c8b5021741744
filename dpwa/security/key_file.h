#pragma once

#include <array>
#include <filesystem>
#include <string_view>
#include <vector>

#include "dpwa/security/private_file.h"

namespace dpwa {

// The keys of a cluster: the first is the one to call others with, all are accepted of callers.
// While a key is changed there are two, else one.
inline constexpr std::size_t most_keys = 2;
using Keys = std::vector<Key>;

// A key file: one key a line as 64 hexadecimal digits, comments from '#'. The error says which line
// and why, never what it holds, and begins with `file`. Pure.
FileResult<Keys> parse_keys(std::string_view text, const std::filesystem::path& file);
SecretText key_file_text(const Keys& keys);

FileResult<Keys> read_key_file(const std::filesystem::path& file);

// From the system's random numbers. Throws std::runtime_error when it has none.
Key new_key();

// What TLS sees of a cluster key: a pre-shared key and the identity by which a caller names it in
// the clear. Both come from the key by HKDF-SHA256 (RFC 5869) under labels of their own, so the
// identity tells nothing of the key. Pure.
struct PreSharedKey {
  Key secret;
  std::array<unsigned char, 16> identity{};

  bool is_named(const unsigned char* name, std::size_t bytes) const;
};
PreSharedKey derive(const Key& key);

}  // namespace dpwa
