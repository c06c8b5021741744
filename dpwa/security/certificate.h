#pragma once

#include <optional>
#include <string>
#include <vector>

#include "dpwa/security/openssl.h"
#include "dpwa/security/private_file.h"

namespace dpwa {

// The names that a certificate is for: the DNS names of subjectAltName, or else the common name.
std::vector<std::string> names_of(const X509* certificate);

// Why a node named `name` (empty: any) cannot show `certificate` as its own; none: it can.
std::optional<std::string> fault_of_own(const X509* certificate, const std::string& name);

// A private key in PEM, without a passphrase, from a file that only its owner may touch.
FileResult<PrivateKeyPointer> read_private_key(const std::string& file);

}  // namespace dpwa
