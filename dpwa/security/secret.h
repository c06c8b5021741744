#pragma once

#include <openssl/crypto.h>

#include <array>
#include <cstddef>
#include <string>
#include <utility>

namespace dpwa {

inline constexpr std::size_t key_bytes = 32;

// Secret bytes that are overwritten when they go out of use.
struct Key {
  std::array<unsigned char, key_bytes> bytes{};

  Key() = default;
  Key(const Key&) = default;
  Key& operator=(const Key&) = default;
  ~Key() { OPENSSL_cleanse(bytes.data(), bytes.size()); }
  bool operator==(const Key& other) const {
    return CRYPTO_memcmp(bytes.data(), other.bytes.data(), bytes.size()) == 0;
  }
};

// The text of a file with secrets, likewise. Never copied, so that no copy stays behind.
class SecretText {
 public:
  explicit SecretText(std::size_t bytes) : text_(bytes, '\0') {}
  SecretText(SecretText&& other) noexcept : text_(std::move(other.text_)) { other.wipe(); }
  SecretText& operator=(SecretText&&) = delete;
  ~SecretText() { wipe(); }

  std::string& text() { return text_; }
  const std::string& text() const { return text_; }

 private:
  // The whole capacity: a short string that was moved from may still hold its bytes.
  void wipe() {
    text_.resize(text_.capacity());
    OPENSSL_cleanse(text_.data(), text_.size());
    text_.clear();
  }

  std::string text_;
};

}  // namespace dpwa
