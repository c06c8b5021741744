#include "test/support/certificates.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <stdexcept>

#include "dpwa/security/openssl.h"

namespace dpwa::test {
namespace {

namespace fs = std::filesystem;
constexpr long day = 24 * 60 * 60;

void require(bool done, const std::string& what) {
  if (!done) throw std::runtime_error("cannot make " + what);
}

void set_name(X509* certificate, const std::string& common_name) {
  X509_NAME* name = X509_get_subject_name(certificate);
  const auto* text = reinterpret_cast<const unsigned char*>(common_name.c_str());
  require(X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, text, -1, -1, 0) == 1, "a name");
}

void add(X509* certificate, int kind, const std::string& value) {
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, kind, value.c_str());
  require(extension != nullptr, "an extension");
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

CertificatePointer new_certificate(EVP_PKEY* key, long seconds) {
  CertificatePointer certificate(X509_new());
  X509_set_version(certificate.get(), X509_VERSION_3);
  std::uint32_t serial = 0;
  require(RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof serial) == 1, "a number");
  ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), serial >> 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), std::min(2 * seconds, -day));
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), seconds);
  X509_set_pubkey(certificate.get(), key);
  return certificate;
}

void write_certificate(const fs::path& file, X509* certificate) {
  std::FILE* stream = std::fopen(file.c_str(), "w");
  require(stream != nullptr && PEM_write_X509(stream, certificate) == 1, file.string());
  std::fclose(stream);
}

void write_key(const fs::path& file, EVP_PKEY* key) {
  std::FILE* stream = std::fopen(file.c_str(), "w");
  require(stream != nullptr, file.string());
  ::chmod(file.c_str(), 0600);
  require(PEM_write_PrivateKey(stream, key, nullptr, nullptr, 0, nullptr, nullptr) == 1,
          file.string());
  std::fclose(stream);
}

}  // namespace

fs::path SecretFolder::write(const std::string& name, const std::string& text,
                             unsigned mode) const {
  const fs::path file = path(name);
  std::ofstream(file, std::ios::binary) << text;
  ::chmod(file.c_str(), mode);
  return file;
}

struct TestAuthority::Pair {
  PrivateKeyPointer key;
  CertificatePointer certificate;
};

TestAuthority::TestAuthority(const SecretFolder& folder, const std::string& name)
    : pair_(new Pair), file_(folder.path(name + ".pem").string()) {
  pair_->key.reset(EVP_EC_gen("P-256"));
  pair_->certificate = new_certificate(pair_->key.get(), day);
  X509* certificate = pair_->certificate.get();
  set_name(certificate, name);
  X509_set_issuer_name(certificate, X509_get_subject_name(certificate));
  add(certificate, NID_basic_constraints, "critical,CA:TRUE");
  add(certificate, NID_key_usage, "critical,keyCertSign");
  require(X509_sign(certificate, pair_->key.get(), EVP_sha256()) > 0, "a signature");
  write_certificate(file_, certificate);
}

TestAuthority::~TestAuthority() {
  delete pair_;
}

void TestAuthority::sign(const SecretFolder& folder, const std::string& file,
                         const Wanted& wanted) const {
  const PrivateKeyPointer key(EVP_EC_gen("P-256"));
  const CertificatePointer certificate = new_certificate(key.get(), wanted.seconds);
  if (!wanted.common_name.empty()) set_name(certificate.get(), wanted.common_name);
  X509_set_issuer_name(certificate.get(), X509_get_subject_name(pair_->certificate.get()));
  if (!wanted.dns.empty()) add(certificate.get(), NID_subject_alt_name, "DNS:" + wanted.dns);
  require(X509_sign(certificate.get(), pair_->key.get(), EVP_sha256()) > 0, "a signature");
  write_certificate(folder.path(file + ".pem"), certificate.get());
  write_key(folder.path(file + ".key"), key.get());
}

}  // namespace dpwa::test
