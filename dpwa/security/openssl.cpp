#include "dpwa/security/openssl.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <algorithm>

#include "dpwa/base/plain_text.h"
#include "dpwa/config/text.h"

namespace dpwa {
namespace {

constexpr std::size_t max_key_file_bytes = std::size_t{64} << 10;

struct GeneralNamesRelease {
  void operator()(GENERAL_NAMES* names) const { GENERAL_NAMES_free(names); }
};
using GeneralNamesPointer = std::unique_ptr<GENERAL_NAMES, GeneralNamesRelease>;

std::string text_of(const ASN1_STRING* text) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
          static_cast<std::size_t>(ASN1_STRING_length(text))};
}

// Keeps OpenSSL from asking for a passphrase.
int no_passphrase(char*, int, int, void*) {
  return 0;
}

}  // namespace

std::string openssl_error() {
  const unsigned long error = ERR_get_error();
  ERR_clear_error();
  const char* reason = error == 0 ? nullptr : ERR_reason_error_string(error);
  return reason == nullptr ? "unknown cause" : reason;
}

std::vector<std::string> names_of(const X509* certificate) {
  std::vector<std::string> names;
  const GeneralNamesPointer alternatives(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; alternatives && i < sk_GENERAL_NAME_num(alternatives.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(alternatives.get(), i);
    if (name->type == GEN_DNS) names.push_back(text_of(name->d.dNSName));
  }
  if (!names.empty()) return names;
  const X509_NAME* subject = X509_get_subject_name(certificate);
  const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  if (at >= 0) names.push_back(text_of(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at))));
  return names;
}

std::optional<std::string> fault_of_own(const X509* certificate, const std::string& name) {
  if (X509_cmp_current_time(X509_get0_notAfter(certificate)) < 0)
    return "has expired; accepted: one that is valid now";
  if (X509_cmp_current_time(X509_get0_notBefore(certificate)) > 0)
    return "is not valid yet; accepted: one that is valid now";
  const auto names = names_of(certificate);
  if (name.empty() || std::ranges::find(names, name) != names.end()) return std::nullopt;
  return "is for " + (names.empty() ? "no name" : config::shown(config::joined(names))) +
         ", not for this node; accepted: subjectAltName = DNS:" + name;
}

FileResult<PrivateKeyPointer> read_private_key(const std::string& file) {
  const auto text = read_private_file(file, max_key_file_bytes);
  if (!text) return text.error();
  const BioPointer memory(
      BIO_new_mem_buf(text->text().data(), static_cast<int>(text->text().size())));
  PrivateKeyPointer key(PEM_read_bio_PrivateKey(memory.get(), nullptr, no_passphrase, nullptr));
  ERR_clear_error();
  if (!key)
    return one_line(file) + ": holds no private key; accepted: one in PEM without a passphrase";
  return key;
}

}  // namespace dpwa
