# Writes FILES of FOLDER to SOURCE, as C++ that defines page_files(). Run by the build, see DpwaPage.cmake.

set(types .html text/html .js text/javascript .css text/css .svg image/svg+xml)
set(rows "")
foreach(file IN LISTS FILES)
  file(READ "${FOLDER}/${file}" text)
  cmake_path(GET file EXTENSION LAST_ONLY extension)
  list(FIND types "${extension}" at)
  math(EXPR at "${at} + 1")
  list(GET types ${at} type)
  set(path "/${file}")
  if(file STREQUAL "index.html")
    set(path "/")
  endif()
  string(APPEND rows "    {\"${path}\", \"${type}; charset=utf-8\", R\"dpwa_page(${text})dpwa_page\"},\n")
endforeach()
file(WRITE "${SOURCE}" "// Written by cmake/WritePage.cmake.
#include \"dpwa/observe/page_files.h\"

namespace dpwa::observe {
namespace {

constexpr PageFile files[] = {
${rows}};

}  // namespace

std::span<const PageFile> page_files() {
  return files;
}

}  // namespace dpwa::observe
")
