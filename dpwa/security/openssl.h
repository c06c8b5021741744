#pragma once

#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <memory>
#include <string>

namespace dpwa {

// Owners of what OpenSSL allocates.
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

// The oldest error that OpenSSL has stored on this thread, in words; all are then forgotten.
std::string openssl_error();

}  // namespace dpwa
