#pragma once

#include <memory>
#include <string>
#include <vector>

#include "dpwa/security/key_file.h"
#include "dpwa/security/openssl.h"

namespace dpwa {

// The server side's knowledge of a caller's key when a handshake fails.
struct OfferedKey {
  bool any = false;    // the caller named a key
  bool known = false;  // and it is one of this node
};

// The keys or certificates of one moment, from which TLS 1.3 connections are made, for both sides.
// It uses TLS_AES_128_GCM_SHA256 with an ephemeral key exchange, which gives forward secrecy. There
// are no session tickets and no early data, and neither side continues without proof from the
// other. Immutable; any thread.
class TlsContext {
 public:
  // Throws std::runtime_error when OpenSSL cannot.
  explicit TlsContext(const Keys& keys);
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  // Certificates of nodes, as PEM files. The own certificate must have `name`, which is empty for a
  // program that is not a node.
  struct CertificateFiles {
    std::string ca;
    std::string certificate;  // the chain of intermediates may follow in it
    std::string key;
    std::string name;
  };
  static KeyedResult<std::shared_ptr<const TlsContext>> load(const CertificateFiles& files);

  // For one connection, ready for its handshake. `reads_bulk`: this end reads more than requests.
  // This and `offered` outlive it. Throws std::bad_alloc.
  SslPointer begin(bool calls, bool reads_bulk, OfferedKey* offered) const;
  // Whether each end shows a certificate, which names its node.
  bool has_certificates() const { return keys_.empty(); }

 private:
  TlsContext();

  std::vector<PreSharedKey> keys_;  // the callbacks of context_ look here
  SslContextPointer context_;
};

}  // namespace dpwa
