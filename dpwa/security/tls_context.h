#pragma once

#include <memory>
#include <string>
#include <vector>

#include "dpwa/security/key_file.h"
#include "dpwa/security/openssl.h"

namespace dpwa {

// What the called has learnt of a caller's key when a handshake fails.
struct OfferedKey {
  bool any = false;    // the caller named a key
  bool known = false;  // and it is one of ours
};

// What TLS 1.3 connections are made with: the keys or certificates of one moment, for callers and
// called alike. TLS_AES_128_GCM_SHA256 with an ephemeral key exchange, hence forward secrecy;
// no session tickets, no early data, and neither side goes on without the other's proof.
// Immutable; any thread.
class TlsContext {
 public:
  // Throws std::runtime_error when OpenSSL cannot.
  explicit TlsContext(const Keys& keys);
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  // Certificates of nodes: files of PEM. `name`: of the node that must stand in the own
  // certificate; empty for a program that is no node. The error is one line that begins with the
  // file at fault.
  struct CertificateFiles {
    std::string ca;
    std::string certificate;  // the chain of intermediates may follow in it
    std::string key;
    std::string name;
  };
  static FileResult<std::shared_ptr<const TlsContext>> load(const CertificateFiles& files);

  // For one connection, ready for its handshake. This and `offered` outlive it. Throws
  // std::bad_alloc.
  SslPointer begin(bool calls, OfferedKey* offered) const;
  // Whether each end shows a certificate, which names its node.
  bool has_certificates() const { return keys_.empty(); }

 private:
  TlsContext();

  std::vector<PreSharedKey> keys_;  // the callbacks of context_ look here
  SslContextPointer context_;
};

}  // namespace dpwa
