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

// The meaning of the first error on OpenSSL's stack, in words that follow the name of the other
// end.
Failure tls_failure(const TlsMoment& moment, unsigned long error);

}  // namespace dpwa::net
