#include "dpwa/web/access.h"

#include <openssl/crypto.h>
#include <strings.h>

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <cstdio>
#include <span>
#include <stdexcept>

#include "dpwa/security/key_file.h"
#include "dpwa/security/private_file.h"

namespace dpwa::web {
namespace {

constexpr std::size_t token_bytes = 16;
constexpr std::size_t longest_token = 128;

bool has_token(const std::string& authorization, const std::string& token) {
  constexpr std::string_view scheme = "Bearer ";
  // Schemes of HTTP are the same in any case.
  if (::strncasecmp(authorization.c_str(), scheme.data(), scheme.size()) != 0) return false;
  const std::string_view given = std::string_view(authorization).substr(scheme.size());
  return given.size() == token.size() &&
         CRYPTO_memcmp(given.data(), token.data(), token.size()) == 0;
}

// "w1:9100" to "w1", "[::1]:9100" to "::1".
std::string_view without_port(std::string_view host) {
  if (host.starts_with('[')) return host.substr(1, host.find(']') - 1);
  return host.substr(0, host.find(':'));
}

}  // namespace

std::optional<Response> refusal(const Request& request, const Access& access, Needs needs) {
  if (request.method != "GET" && request.method != "HEAD") {
    Response response = error_response(405, "this server is read-only; accepted: GET, HEAD");
    response.headers.emplace_back("Allow", "GET, HEAD");
    return response;
  }
  if (needs == Needs::nothing) return std::nullopt;
  if (!is_own_host(request.host, access.names)) {
    return error_response(
        403,
        "the Host of this request is no name of this server; accepted: localhost, its address");
  }
  const bool is_open = needs == Needs::own_host || access.token.empty();
  if (is_open || has_token(request.authorization, access.token)) return std::nullopt;
  Response response = error_response(401, "needs the header Authorization: Bearer TOKEN");
  response.headers.emplace_back("WWW-Authenticate", "Bearer");
  return response;
}

bool is_own_host(std::string_view host, const std::vector<std::string>& names) {
  const std::string name(without_port(host));
  boost::system::error_code not_numeric;
  boost::asio::ip::make_address(name, not_numeric);
  return !not_numeric || name == "localhost" || std::ranges::find(names, name) != names.end();
}

std::vector<std::pair<std::string, std::string>> security_headers() {
  return {{"Content-Security-Policy",
           "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
           "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
          {"X-Frame-Options", "DENY"},
          {"X-Content-Type-Options", "nosniff"},
          {"Referrer-Policy", "no-referrer"},
          {"Cross-Origin-Resource-Policy", "same-origin"},
          {"Cache-Control", "no-store"}};
}

std::string new_token() {
  const Key random = new_key();
  std::string token;
  for (const unsigned char byte : std::span(random.bytes).first<token_bytes>()) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", byte);
    token += digits;
  }
  return token;
}

std::string read_token(const std::string& file) {
  const auto read = read_private_file(file, longest_token + 2);
  if (!read) throw std::runtime_error(read.error());
  const std::string token = read->text().substr(0, read->text().find_first_of("\r\n"));
  const bool is_visible = std::ranges::all_of(token, [](char c) { return c > ' ' && c <= '~'; });
  if (!is_visible || token.size() < token_bytes || token.size() > longest_token) {
    throw std::runtime_error(file +
                             ": no token; accepted: 16 to 128 visible ASCII characters in the "
                             "first line, such as those of `openssl rand -hex 16`");
  }
  return token;
}

}  // namespace dpwa::web
