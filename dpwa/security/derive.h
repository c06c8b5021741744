#pragma once

#include <array>
#include <string_view>

#include "dpwa/security/secret.h"

namespace dpwa {

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
