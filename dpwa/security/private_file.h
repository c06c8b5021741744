#pragma once

#include <openssl/crypto.h>
#include <sys/types.h>

#include <array>
#include <boost/system/result.hpp>
#include <cstddef>
#include <filesystem>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

namespace dpwa {

inline constexpr std::size_t key_bytes = 32;

// Secret bytes that are overwritten when they are destroyed.
struct Key {
  std::array<unsigned char, key_bytes> bytes{};

  Key() = default;
  Key(const Key&) = default;
  Key& operator=(const Key&) = default;
  ~Key() { OPENSSL_cleanse(bytes.data(), bytes.size()); }
  bool operator==(const Key& other) const {
    return CRYPTO_memcmp(bytes.data(), other.bytes.data(), bytes.size()) == 0;
  }
};

// The text of a file with secrets, overwritten in the same way. It cannot be copied, so no copy is
// left behind.
class SecretText {
 public:
  explicit SecretText(std::size_t bytes) : text_(bytes, '\0') {}
  SecretText(SecretText&& other) noexcept : text_(std::move(other.text_)) { other.wipe(); }
  SecretText& operator=(SecretText&&) = delete;
  ~SecretText() { wipe(); }

  std::string& text() { return text_; }
  const std::string& text() const { return text_; }

 private:
  // Overwrites the whole capacity: a short string that was moved from may still have its bytes.
  void wipe() {
    text_.resize(text_.capacity());
    OPENSSL_cleanse(text_.data(), text_.size());
    text_.clear();
  }

  std::string text_;
};

// The error is one line that names the file and never shows its contents.
template <typename T>
using FileResult = boost::system::result<T, std::string>;

// Why a file of the section `security` cannot be used.
struct KeyedFault {
  std::string key;      // of the cluster file, such as "key_file"
  std::string problem;  // as of FileResult
};
template <typename T>
using KeyedResult = boost::system::result<T, KeyedFault>;

// Whether a file that a group may read is as private as one of the user alone: that group is one of
// `own`, nobody may write it, others may not read it, and its volume is mounted read-only. That is
// how Kubernetes mounts a Secret with mode 0440 for the fsGroup of a pod.
bool is_secret_of_group(mode_t mode, gid_t group, std::span<const gid_t> own, bool read_only);

// Reads a file that only its owner may touch: a regular file of this user or of root, without
// permissions for group and others (symbolic links are followed), or a secret of a group as above,
// of at most `max_bytes`. It
// refuses a file when all users can replace something in a folder on the way to it. Such a folder
// is world-writable without the sticky bit, or has the sticky bit and belongs to a user other than
// this one and root.
FileResult<SecretText> read_private_file(const std::filesystem::path& file, std::size_t max_bytes);

// The file to be created exists already.
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
