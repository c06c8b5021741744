# The files of the page of `dpwa dashboard` as a C++ source: no file is looked for when the program runs.

# What is not ours, as it was published (dpwa/observe/page/uplot/README.md).
set(dpwa_published uplot/uPlot.iife.min.js uplot/uPlot.min.css)
set(dpwa_published_sha256
  19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f
  df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04)

# dpwa_embed_page(TARGET FOLDER file...): adds a source to TARGET with page_files() (page_files.h), of these files of
# FOLDER. A file is served below "/" under its path; index.html as "/".
function(dpwa_embed_page target folder)
  set(source "${CMAKE_CURRENT_BINARY_DIR}/page_files.cpp")
  list(TRANSFORM ARGN PREPEND "${folder}/" OUTPUT_VARIABLE paths)
  foreach(file checksum IN ZIP_LISTS dpwa_published dpwa_published_sha256)
    file(SHA256 "${folder}/${file}" found)
    if(NOT found STREQUAL checksum)
      message(FATAL_ERROR "${folder}/${file} is not the published file: its SHA-256 is ${found}; accepted: ${checksum}")
    endif()
  endforeach()
  add_custom_command(
    OUTPUT "${source}"
    COMMAND "${CMAKE_COMMAND}" "-DFOLDER=${folder}" "-DFILES=${ARGN}" "-DSOURCE=${source}"
            -P "${PROJECT_SOURCE_DIR}/cmake/WritePage.cmake"
    DEPENDS ${paths} "${PROJECT_SOURCE_DIR}/cmake/WritePage.cmake"
    VERBATIM)
  target_sources(${target} PRIVATE "${source}")
endfunction()
