# The layers of dpwa/: each folder a library of its own that states what it may use.

# dpwa_layer(NAME SOURCES file... [USES layer...] [LINKS target...])
#
#   USES   the layers, and `interpolation`, whose headers it may include and whose code it may call;
#          scripts/check_includes.py reads this list and holds every include line to it
#   LINKS  third-party targets, which those that use the layer do not see
#
# Adds the library dpwa_NAME, and with the tests the program dpwa_NAME_links: the whole archive, with
# nothing beyond what is stated. An archive alone is never asked whether its symbols can be found.
function(dpwa_layer name)
  cmake_parse_arguments(PARSE_ARGV 1 layer "" "" "SOURCES;USES;LINKS")
  if(layer_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "dpwa_layer(${name}): '${layer_UNPARSED_ARGUMENTS}'; accepted: SOURCES, USES, LINKS")
  endif()
  add_library(dpwa_${name} STATIC ${layer_SOURCES})
  dpwa_target(dpwa_${name})
  list(TRANSFORM layer_USES PREPEND dpwa_)
  target_link_libraries(dpwa_${name} PUBLIC ${layer_USES} Boost::headers Threads::Threads PRIVATE ${layer_LINKS})
  target_link_libraries(dpwa_core INTERFACE dpwa_${name})
  set_property(GLOBAL APPEND PROPERTY DPWA_LAYERS ${name})
  if(DPWA_TESTS)
    add_executable(dpwa_${name}_links "${PROJECT_SOURCE_DIR}/cmake/links.cpp")
    set_target_properties(dpwa_${name}_links PROPERTIES UNITY_BUILD OFF)
    target_link_libraries(dpwa_${name}_links PRIVATE
      -Wl,--whole-archive "$<TARGET_FILE:dpwa_${name}>" -Wl,--no-whole-archive
      ${layer_USES} ${layer_LINKS} Threads::Threads)
    add_dependencies(dpwa_${name}_links dpwa_${name})
  endif()
endfunction()
