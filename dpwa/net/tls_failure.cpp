#include "dpwa/net/tls_failure.h"

#include <openssl/err.h>
#include <openssl/x509_vfy.h>

#include <string>
#include <utility>

#include "dpwa/net/io_thread.h"

namespace dpwa::net {
namespace {

// What the caller says when the called end has refused its key. The called end itself says "has
// another cluster key".
constexpr auto other_key = "has another cluster key than this process (security.key_file)";

Failure not_accepted(std::string what) {
  return {Failure::Kind::security, std::move(what)};
}

bool concerns_certificate(int alert) {
  switch (alert) {
    case SSL_AD_BAD_CERTIFICATE:
    case SSL_AD_UNSUPPORTED_CERTIFICATE:
    case SSL_AD_CERTIFICATE_REVOKED:
    case SSL_AD_CERTIFICATE_EXPIRED:
    case SSL_AD_CERTIFICATE_UNKNOWN:
    case SSL_AD_UNKNOWN_CA:
    case SSL_AD_ACCESS_DENIED:
    case SSL_AD_CERTIFICATE_REQUIRED:
      return true;
    default:
      return false;
  }
}

bool concerns_key(int alert) {
  return alert == SSL_AD_HANDSHAKE_FAILURE || alert == SSL_AD_DECRYPT_ERROR ||
         alert == SSL_AD_UNKNOWN_PSK_IDENTITY;
}

// The other end has said why it will not go on.
Failure alerted(const TlsMoment& moment, int alert) {
  const std::string words = SSL_alert_desc_string_long(alert);
  if (concerns_certificate(alert)) {
    return not_accepted(moment.certificates ? "does not accept this node's certificate: " + words
                                            : std::string(other_key) + " (" + words + ")");
  }
  if (moment.established) return {Failure::Kind::ended, "ended TLS: " + words};
  if (concerns_key(alert)) {
    return not_accepted(moment.certificates
                            ? "accepts no certificate of this node (is its security mode psk?)"
                            : other_key);
  }
  if (alert == SSL_AD_PROTOCOL_VERSION)
    return not_accepted("speaks no TLS 1.3 (is its security mode insecure?)");
  return not_accepted("ended the TLS handshake: " + words);
}

// The caller's key, as the called saw it; none: that was not what failed.
std::string key_fault(const TlsMoment& moment, int reason) {
  if (moment.certificates || moment.calls) return {};
  if (reason != SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM && reason != SSL_R_NO_SHARED_CIPHER &&
      reason != SSL_R_BINDER_DOES_NOT_VERIFY)
    return {};
  if (!moment.offered.any) return "offers no cluster key (is its security mode mtls?)";
  return moment.offered.known ? "cannot prove its cluster key" : "has another cluster key";
}

}  // namespace

Failure tls_failure(const TlsMoment& moment, unsigned long error) {
  const int reason = ERR_GET_REASON(error);
  if (reason == ERR_R_MALLOC_FAILURE) end_for_want_of_memory();
  if (reason > SSL_AD_REASON_OFFSET) return alerted(moment, reason - SSL_AD_REASON_OFFSET);
  const char* known = ERR_reason_error_string(error);
  const std::string words = known == nullptr ? "unknown cause" : known;
  if (moment.established) {
    if (reason == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE)
      return not_accepted("shows no certificate");
    return {Failure::Kind::protocol, "sent an invalid TLS record: " + words};
  }
  if (const std::string fault = key_fault(moment, reason); !fault.empty())
    return not_accepted(fault);
  switch (reason) {
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_UNKNOWN_PROTOCOL:
    case SSL_R_HTTP_REQUEST:
      return not_accepted("speaks no TLS (is its security mode insecure?)");
    case SSL_R_UNSUPPORTED_PROTOCOL:
      return not_accepted("speaks no TLS 1.3");
    case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
      return not_accepted("shows no certificate (is its security mode psk?)");
    case SSL_R_CERTIFICATE_VERIFY_FAILED: {
      if (!moment.certificates)
        return not_accepted(
            "shows a certificate, not the cluster key (is its security mode mtls?)");
      const long verdict = SSL_get_verify_result(moment.ssl);
      return not_accepted(std::string("shows a certificate that is not accepted: ") +
                          X509_verify_cert_error_string(verdict));
    }
    default:
      return {Failure::Kind::protocol, "broke the TLS handshake: " + words};
  }
}

}  // namespace dpwa::net
