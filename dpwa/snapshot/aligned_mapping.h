#pragma once

#include <cstddef>

namespace dpwa {

// As x86-64 has them; a kernel with larger pages rounds up by itself.
inline constexpr std::size_t page_bytes = 4096;
inline constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;

// A mapping of `bytes` that begins on a multiple of `alignment` (a power of two): of the file
// `descriptor` from its beginning on, shared, or of anonymous private memory for -1. Null when the
// system refuses. The caller unmaps exactly [result, result + bytes).
std::byte* map_aligned(std::size_t bytes, std::size_t alignment, int protection,
                       int descriptor = -1);

// Zeroes every page of a shared mapping, so that each is there from now on, on huge pages where the
// mapping begins on one and the system has them.
void touch_shared_pages(std::byte* data, std::size_t bytes);

}  // namespace dpwa
