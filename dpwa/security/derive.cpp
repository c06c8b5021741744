#include "dpwa/security/derive.h"

#include <openssl/core_names.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

#include <memory>
#include <span>
#include <stdexcept>
#include <string>

namespace dpwa {
namespace {

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
