#pragma once

#include <cstdint>

namespace dpwa {

// Which blocks of one peer's latest known version have been blended already. A version is blended
// at most once a block: asking with known_version() makes the peer answer NOT_MODIFIED instead of
// sending the same parameters again, and repeats() detects a peer that sends them nevertheless.
// Pure; one per peer.
class SeenBlocks {
 public:
  // The incarnation of the process that the blocks were taken from; 0 = none taken yet.
  std::uint64_t incarnation() const { return incarnation_; }

  // The version to state when asking for `block` (0 to 63); 0 = nothing to state.
  std::uint64_t known_version(std::uint64_t incarnation, unsigned block) const {
    const bool known = incarnation == incarnation_ && (blocks_ >> block & 1) != 0;
    return known ? version_ : 0;
  }

  // Whether this version was taken already, or is older than one that was. A sound peer never sends
  // such a version: its versions grow, and it was told the last one.
  bool repeats(std::uint64_t incarnation, std::uint64_t version, unsigned block) const {
    if (incarnation != incarnation_ || version > version_) return false;
    return version < version_ || (blocks_ >> block & 1) != 0;
  }

  void took(std::uint64_t incarnation, std::uint64_t version, unsigned block) {
    if (incarnation != incarnation_ || version != version_) {
      incarnation_ = incarnation;
      version_ = version;
      blocks_ = 0;
    }
    blocks_ |= std::uint64_t{1} << block;
  }
  void took_all(std::uint64_t incarnation, std::uint64_t version) {
    incarnation_ = incarnation;
    version_ = version;
    blocks_ = ~std::uint64_t{0};
  }

 private:
  std::uint64_t incarnation_ = 0;
  std::uint64_t version_ = 0;
  std::uint64_t blocks_ = 0;
};

}  // namespace dpwa
