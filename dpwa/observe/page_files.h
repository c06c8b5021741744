#pragma once

#include <span>
#include <string_view>

namespace dpwa::observe {

// A file of dpwa/observe/page, built into the program.
struct PageFile {
  const char* path;  // of its URL
  const char* type;  // Content-Type
  std::string_view text;
};

// All of them; "/" is the page itself.
std::span<const PageFile> page_files();

}  // namespace dpwa::observe
