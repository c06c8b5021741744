# The layers of dpwa/: each folder a library of its own that states what it may use.

# dpwa_layer(NAME SOURCES file... [USES layer...] [LINKS target...])
#
#   SOURCES  in the folder NAME of the calling folder, or in the calling folder itself where it has none
#   USES     the layers, and `interpolation`, whose headers it may include and whose code it may call;
#            scripts/check_includes.py reads this list and checks every include line against it
#   LINKS    third-party targets, which those that use the layer do not see
#
# Adds the library dpwa_NAME, and with the tests the program dpwa_NAME_links, which links the whole archive and nothing
# beyond what is stated: building an archive does not check that its symbols can be found.
function(dpwa_layer name)
  cmake_parse_arguments(PARSE_ARGV 1 layer "" "" "SOURCES;USES;LINKS")
  if(layer_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "dpwa_layer(${name}): '${layer_UNPARSED_ARGUMENTS}'; accepted: SOURCES, USES, LINKS")
  endif()
  if(IS_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}/${name}")
    list(TRANSFORM layer_SOURCES PREPEND "${name}/")
  endif()
  add_library(dpwa_${name} STATIC ${layer_SOURCES})
  dpwa_target(dpwa_${name})
  # As few units as have fourteen sources at most, of about the same size: a unit reads the headers that they share once,
  # and is compiled again when one of them changes.
  list(LENGTH layer_SOURCES count)
  math(EXPR units "(${count} + 13) / 14")
  math(EXPR batch "(${count} + ${units} - 1) / ${units}")
  set_target_properties(dpwa_${name} PROPERTIES UNITY_BUILD_BATCH_SIZE ${batch})
  list(TRANSFORM layer_USES PREPEND dpwa_)
  target_link_libraries(dpwa_${name} PUBLIC ${layer_USES} Boost::headers Threads::Threads PRIVATE ${layer_LINKS})
  target_link_libraries(dpwa_core INTERFACE dpwa_${name})
  set_property(GLOBAL APPEND PROPERTY DPWA_LAYERS ${name})
  if(DPWA_TESTS)
    set(main "${PROJECT_BINARY_DIR}/links.cpp")
    file(CONFIGURE OUTPUT "${main}" CONTENT "int main() {}\n")
    add_executable(dpwa_${name}_links "${main}")
    set_target_properties(dpwa_${name}_links PROPERTIES UNITY_BUILD OFF)
    target_link_libraries(dpwa_${name}_links PRIVATE
      -Wl,--whole-archive "$<TARGET_FILE:dpwa_${name}>" -Wl,--no-whole-archive
      ${layer_USES} ${layer_LINKS} Threads::Threads)
    add_dependencies(dpwa_${name}_links dpwa_${name})
  endif()
endfunction()
