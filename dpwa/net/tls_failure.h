#pragma once

#include <openssl/ssl.h>

#include "dpwa/net/failure.h"
#include "dpwa/security/tls_context.h"

namespace dpwa::net {

// Where a connection stood when TLS failed.
struct TlsMoment {
  const SSL* ssl;
  bool certificates;  // else a cluster key
  bool calls;         // this end called
  bool established;   // the handshake was over for this end
  OfferedKey offered;
};

// What the first error on OpenSSL's stack means, in words that go on from "it", the other end.
Failure tls_failure(const TlsMoment& moment, unsigned long error);

}  // namespace dpwa::net
