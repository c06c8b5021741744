#include "dpwa/security/openssl.h"

#include <openssl/err.h>

namespace dpwa {

std::string openssl_error() {
  const unsigned long error = ERR_get_error();
  ERR_clear_error();
  const char* reason = error == 0 ? nullptr : ERR_reason_error_string(error);
  return reason == nullptr ? "unknown cause" : reason;
}

}  // namespace dpwa
