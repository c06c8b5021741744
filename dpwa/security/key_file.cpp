#include "dpwa/security/key_file.h"

#include <openssl/core_names.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <openssl/rand.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>

#include "dpwa/base/plain_text.h"

namespace dpwa {
namespace {

constexpr std::size_t most_bytes_of_keys = 4096;
constexpr std::size_t digits = 2 * key_bytes;
constexpr const char* accepted =
    "; accepted: one or two lines of 64 hexadecimal digits, as dpwa keygen writes them";
constexpr const char* comment =
    "# dpwa cluster key: keep it secret. One key a line: the first is used to call others,\n"
    "# all are accepted of callers. Made and changed by dpwa keygen.\n";

std::optional<unsigned char> value_of(char digit) {
  if (digit >= '0' && digit <= '9') return static_cast<unsigned char>(digit - '0');
  if (digit >= 'a' && digit <= 'f') return static_cast<unsigned char>(digit - 'a' + 10);
  if (digit >= 'A' && digit <= 'F') return static_cast<unsigned char>(digit - 'A' + 10);
  return std::nullopt;
}

std::string_view without_blanks(std::string_view text) {
  constexpr const char* blanks = " \t\r";
  const auto first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

FileResult<Key> parse_key(std::string_view text) {
  const bool is_hexadecimal =
      std::ranges::all_of(text, [](char c) { return value_of(c).has_value(); });
  if (!is_hexadecimal) return std::string("is not a key");
  if (text.size() != digits) {
    return std::string(text.size() < digits ? "is too short" : "is too long") + ": a key of " +
           std::to_string(text.size()) + " digits";
  }
  Key key;
  for (std::size_t i = 0; i < key_bytes; ++i) {
    key.bytes[i] =
        static_cast<unsigned char>(*value_of(text[2 * i]) << 4 | *value_of(text[2 * i + 1]));
  }
  if (std::ranges::all_of(key.bytes, [](unsigned char byte) { return byte == 0; }))
    return std::string("is not a secret: all its digits are zero");
  return key;
}

void hkdf(const Key& key, std::string_view label, std::span<unsigned char> output) {
  const std::unique_ptr<EVP_KDF, decltype(&EVP_KDF_free)> kdf(
      EVP_KDF_fetch(nullptr, "HKDF", nullptr), EVP_KDF_free);
  const std::unique_ptr<EVP_KDF_CTX, decltype(&EVP_KDF_CTX_free)> context(
      EVP_KDF_CTX_new(kdf.get()), EVP_KDF_CTX_free);
  char digest[] = "SHA256";
  Key input = key;
  std::string info(label);
  const OSSL_PARAM parameters[] = {
      OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, input.bytes.data(), input.bytes.size()),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, info.data(), info.size()),
      OSSL_PARAM_construct_end()};
  if (!context || EVP_KDF_derive(context.get(), output.data(), output.size(), parameters) != 1)
    throw std::runtime_error("OpenSSL cannot derive keys by HKDF-SHA256");
}

}  // namespace

FileResult<Keys> parse_keys(std::string_view text, const std::filesystem::path& file) {
  const std::string name = one_line(file.string());
  Keys keys;
  for (int number = 1; !text.empty(); ++number) {
    const auto end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    const std::string_view entry = without_blanks(line.substr(0, line.find('#')));
    if (entry.empty()) continue;
    const std::string place = name + ":" + std::to_string(number) + ": ";
    const auto key = parse_key(entry);
    if (!key) return place + key.error() + accepted;
    if (std::ranges::find(keys, *key) != keys.end())
      return place + "is the same key again" + accepted;
    if (keys.size() == most_keys) return place + "is one key too many" + accepted;
    keys.push_back(*key);
  }
  if (keys.empty()) return name + ": holds no key" + accepted;
  return keys;
}

SecretText key_file_text(const Keys& keys) {
  constexpr std::string_view digit = "0123456789abcdef";
  const std::string_view head = comment;
  // Written in place and never grown, because a reallocation would leave a copy behind.
  SecretText file(head.size() + keys.size() * (digits + 1));
  auto next = std::ranges::copy(head, file.text().begin()).out;
  for (const Key& key : keys) {
    for (const unsigned char byte : key.bytes) {
      *next++ = digit[byte >> 4];
      *next++ = digit[byte & 15];
    }
    *next++ = '\n';
  }
  return file;
}

FileResult<Keys> read_key_file(const std::filesystem::path& file) {
  const auto secret = read_private_file(file, most_bytes_of_keys);
  if (!secret) return secret.error();
  return parse_keys(secret->text(), file);
}

Key new_key() {
  Key key;
  if (RAND_priv_bytes(key.bytes.data(), static_cast<int>(key.bytes.size())) != 1)
    throw std::runtime_error("the system gave no random numbers for a key");
  return key;
}

bool PreSharedKey::is_named(const unsigned char* name, std::size_t bytes) const {
  return bytes == identity.size() && CRYPTO_memcmp(name, identity.data(), bytes) == 0;
}

PreSharedKey derive(const Key& key) {
  PreSharedKey derived;
  hkdf(key, "dpwa cluster key 1: tls 1.3 pre-shared key", derived.secret.bytes);
  hkdf(key, "dpwa cluster key 1: identity", derived.identity);
  return derived;
}

}  // namespace dpwa
