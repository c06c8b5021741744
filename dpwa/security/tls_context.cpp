#include "dpwa/security/tls_context.h"

#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <cerrno>
#include <new>
#include <stdexcept>
#include <system_error>

#include "dpwa/base/file_descriptor.h"
#include "dpwa/base/plain_text.h"
#include "dpwa/security/openssl.h"

namespace dpwa {
namespace {

constexpr const char* cipher_suite = "TLS_AES_128_GCM_SHA256";
constexpr unsigned char cipher_suite_id[] = {0x13, 0x01};
constexpr const char* groups = "X25519:P-256";
// With this buffer one read of the socket gives several records (16 KiB each) if they have arrived.
constexpr std::size_t read_buffer_bytes = std::size_t{128} << 10;

void require(bool done, const char* what) {
  if (!done)
    throw std::runtime_error(std::string("OpenSSL cannot ") + what + ": " + openssl_error());
}

// Such as "ca.pem: cannot be read: No such file or directory"; empty: it can.
std::string unreadable(const std::string& file) {
  const FileDescriptor descriptor(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (descriptor.get() >= 0) return "";
  return one_line(file) + ": cannot be read: " + std::generic_category().message(errno);
}

SslSessionPointer session_of(SSL* ssl, const PreSharedKey& key) {
  SslSessionPointer session(SSL_SESSION_new());
  const SSL_CIPHER* cipher = SSL_CIPHER_find(ssl, cipher_suite_id);
  const bool made = session && cipher != nullptr &&
                    SSL_SESSION_set1_master_key(session.get(), key.secret.bytes.data(),
                                                key.secret.bytes.size()) == 1 &&
                    SSL_SESSION_set_cipher(session.get(), cipher) == 1 &&
                    SSL_SESSION_set_protocol_version(session.get(), TLS1_3_VERSION) == 1;
  if (!made) session.reset();
  return session;
}

const std::vector<PreSharedKey>& keys_of(SSL* ssl) {
  return *static_cast<const std::vector<PreSharedKey>*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl)));
}

int offer_key(SSL* ssl, const EVP_MD*, const unsigned char** identity, std::size_t* identity_bytes,
              SSL_SESSION** session) {
  const PreSharedKey& key = keys_of(ssl).front();
  *identity = key.identity.data();
  *identity_bytes = key.identity.size();
  *session = session_of(ssl, key).release();
  return *session != nullptr ? 1 : 0;
}

// An unknown key is not an error here: the handshake then looks for a certificate and fails because
// there is none.
int find_key(SSL* ssl, const unsigned char* identity, std::size_t identity_bytes,
             SSL_SESSION** session) {
  auto* offered = static_cast<OfferedKey*>(SSL_get_app_data(ssl));
  offered->any = true;
  *session = nullptr;
  for (const PreSharedKey& key : keys_of(ssl)) {
    if (!key.is_named(identity, identity_bytes)) continue;
    offered->known = true;
    *session = session_of(ssl, key).release();
    return *session != nullptr ? 1 : 0;
  }
  return 1;
}

// OpenSSL computes the extensions of a certificate when it first needs them. This does it before
// the network threads share the authorities.
void work_out_extensions(SSL_CTX* context) {
  STACK_OF(X509_OBJECT)* objects = X509_STORE_get0_objects(SSL_CTX_get_cert_store(context));
  for (int i = 0; i < sk_X509_OBJECT_num(objects); ++i) {
    X509* authority = X509_OBJECT_get0_X509(sk_X509_OBJECT_value(objects, i));
    if (authority != nullptr) X509_check_purpose(authority, -1, 0);
  }
}

}  // namespace

TlsContext::TlsContext() : context_(SSL_CTX_new(TLS_method())) {
  require(context_ != nullptr, "set up TLS");
  SSL_CTX* context = context_.get();
  require(SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1 &&
              SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION) == 1 &&
              SSL_CTX_set_ciphersuites(context, cipher_suite) == 1 &&
              SSL_CTX_set1_groups_list(context, groups) == 1,
          "set up TLS 1.3");
  SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_num_tickets(context, 0);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_max_early_data(context, 0);
  SSL_CTX_set_read_ahead(context, 1);
  SSL_CTX_clear_mode(context, SSL_MODE_AUTO_RETRY);  // a read also returns at records without data
  // With keys, a certificate of the server side cannot be verified, so showing one does not admit
  // it.
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
}

TlsContext::TlsContext(const Keys& keys) : TlsContext() {
  keys_.reserve(keys.size());
  for (const Key& key : keys) keys_.push_back(derive(key));
  SSL_CTX_set_app_data(context_.get(), &keys_);
  SSL_CTX_set_psk_use_session_callback(context_.get(), offer_key);
  SSL_CTX_set_psk_find_session_callback(context_.get(), find_key);
}

SslPointer TlsContext::begin(bool calls, bool reads_bulk, OfferedKey* offered) const {
  SslPointer ssl(SSL_new(context_.get()));
  if (!ssl) throw std::bad_alloc();
  SSL_set_app_data(ssl.get(), offered);
  if (calls) {
    SSL_set_connect_state(ssl.get());
  } else {
    SSL_set_accept_state(ssl.get());
    // A caller has only its key and no certificate, so without the key it cannot answer.
    if (!has_certificates()) SSL_set_verify(ssl.get(), SSL_VERIFY_NONE, nullptr);
  }
  if (reads_bulk) SSL_set_default_read_buffer_len(ssl.get(), read_buffer_bytes);
  return ssl;
}

KeyedResult<std::shared_ptr<const TlsContext>> TlsContext::load(const CertificateFiles& files) {
  const std::shared_ptr<TlsContext> loaded(new TlsContext());
  SSL_CTX* context = loaded->context_.get();
  if (std::string why = unreadable(files.ca); !why.empty()) return KeyedFault{"ca", std::move(why)};
  if (std::string why = unreadable(files.certificate); !why.empty())
    return KeyedFault{"cert", std::move(why)};
  ERR_clear_error();
  if (SSL_CTX_load_verify_file(context, files.ca.c_str()) != 1) {
    return KeyedFault{"ca", one_line(files.ca) + ": holds no certificates of authorities in PEM: " +
                                openssl_error() + "; accepted: at least one"};
  }
  work_out_extensions(context);
  const std::string certificate = one_line(files.certificate);
  if (SSL_CTX_use_certificate_chain_file(context, files.certificate.c_str()) != 1) {
    return KeyedFault{"cert", certificate + ": holds no certificate in PEM: " + openssl_error() +
                                  "; accepted: the certificate of this node"};
  }
  if (const auto fault = fault_of_own(SSL_CTX_get0_certificate(context), files.name))
    return KeyedFault{"cert", certificate + ": " + *fault};
  const auto key = read_private_key(files.key);
  if (!key) return KeyedFault{"key", key.error()};
  if (SSL_CTX_use_PrivateKey(context, key->get()) != 1 || SSL_CTX_check_private_key(context) != 1) {
    return KeyedFault{"key", one_line(files.key) + ": is not the key of the certificate in " +
                                 certificate + "; accepted: the private key of that certificate"};
  }
  return std::shared_ptr<const TlsContext>(loaded);
}

}  // namespace dpwa
