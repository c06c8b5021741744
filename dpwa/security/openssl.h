#pragma once

#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dpwa/security/private_file.h"

namespace dpwa {

// Owners of objects that OpenSSL allocates.
template <auto release>
struct OpenSslRelease {
  template <typename T>
  void operator()(T* object) const {
    release(object);
  }
};
using SslPointer = std::unique_ptr<SSL, OpenSslRelease<SSL_free>>;
using SslContextPointer = std::unique_ptr<SSL_CTX, OpenSslRelease<SSL_CTX_free>>;
using SslSessionPointer = std::unique_ptr<SSL_SESSION, OpenSslRelease<SSL_SESSION_free>>;
using CertificatePointer = std::unique_ptr<X509, OpenSslRelease<X509_free>>;
using BioPointer = std::unique_ptr<BIO, OpenSslRelease<BIO_free_all>>;
using PrivateKeyPointer = std::unique_ptr<EVP_PKEY, OpenSslRelease<EVP_PKEY_free>>;

// The oldest error that OpenSSL has stored on this thread, in words. Clears all stored errors.
std::string openssl_error();

// The names that a certificate is for: the DNS names of subjectAltName, or else the common name.
std::vector<std::string> names_of(const X509* certificate);

// Why a node named `name` (empty: any name) cannot use `certificate` as its own; none: it can.
std::optional<std::string> fault_of_own(const X509* certificate, const std::string& name);

// A private key in PEM, without a passphrase, from a file that only its owner may touch.
FileResult<PrivateKeyPointer> read_private_key(const std::string& file);

}  // namespace dpwa
