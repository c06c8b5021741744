#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dpwa/web/http.h"

namespace dpwa::web {

// Who may read what a server tells.
struct Access {
  std::string token;               // of `Authorization: Bearer TOKEN`; empty: everybody may read
  std::vector<std::string> names;  // of the server, beside localhost and numeric addresses
};

// What a request has to show for an answer, besides what the one before it needs. A Host that is a
// foreign name is refused: a page of another site whose name was bound to the address of this
// server (DNS rebinding) must not read from it.
enum class Needs : std::uint8_t {
  nothing,   // of probes: they name the server by any name that leads to it
  own_host,  // of a page
  token,
};

// Why a request gets no answer; none: it may be answered. Only GET and HEAD are served. The token
// is compared in constant time. Pure.
std::optional<Response> refusal(const Request& request, const Access& access, Needs needs);

// Whether a header Host names a server with these names, on any port: a tunnel has another one.
bool is_own_host(std::string_view host, const std::vector<std::string>& names);

// Headers of every response: the page loads nothing but its own files, is not framed, is not
// guessed to be of another type, and is not kept.
std::vector<std::pair<std::string, std::string>> security_headers();

// A token from the random numbers of the system, of 32 hexadecimal digits. Throws
// std::runtime_error when there are none.
std::string new_token();

// That of a file: its first line. Throws std::runtime_error with one line that names the file when
// other users may read it, or the token is no visible ASCII of 16 to 128 characters.
std::string read_token(const std::string& file);

}  // namespace dpwa::web
