#pragma once

#include <boost/system/result.hpp>
#include <cstddef>
#include <filesystem>
#include <stdexcept>
#include <string>

#include "dpwa/security/secret.h"

namespace dpwa {

// What is wrong with a file or what it holds: one line that names the file, without its contents.
template <typename T>
using FileResult = boost::system::result<T, std::string>;

// Reads a file that only its owner may touch: a regular file of this user or of root, without
// permissions for group and others (symbolic links are followed), of at most `max_bytes`. No folder
// on the way to it may let all users replace what is in it: world-writable without the sticky bit,
// or with it and of a user that is neither this one nor root.
FileResult<SecretText> read_private_file(const std::filesystem::path& file, std::size_t max_bytes);

// The file that was to be created is there already.
class FileExists : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Creates `file` with mode 0600 from its first moment and syncs it. Throws FileExists when it
// exists, else std::runtime_error.
void create_private_file(const std::filesystem::path& file, const SecretText& text);

// Replaces `file` in one step by one of mode 0600: a crash leaves the old or the new contents.
// Throws std::runtime_error.
void replace_private_file(const std::filesystem::path& file, const SecretText& text);

}  // namespace dpwa
