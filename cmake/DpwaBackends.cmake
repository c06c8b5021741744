# The back ends of this build. DPWA_<NAME>_ABSENT says why one is left out, in words that follow its name; empty: it is
# built. `null` always is.
option(DPWA_BACKEND_GOSSIP "Build the gossip adapter" ON)
option(DPWA_BACKEND_COLLECTIVE "Build the collective adapter (c10d process groups of LibTorch)" ON)

set(DPWA_GOSSIP_ABSENT "")
set(DPWA_COLLECTIVE_ABSENT "")
set(DPWA_KVSTORE_ABSENT "is not available in this version")
if(NOT DPWA_BACKEND_GOSSIP)
  set(DPWA_GOSSIP_ABSENT "is left out of this build (DPWA_BACKEND_GOSSIP=OFF)")
endif()

if(NOT DPWA_TORCH)
  set(DPWA_COLLECTIVE_ABSENT "needs LibTorch, which this build is without")
elseif(NOT DPWA_BACKEND_COLLECTIVE)
  set(DPWA_COLLECTIVE_ABSENT "is left out of this build (DPWA_BACKEND_COLLECTIVE=OFF)")
endif()

# dpwa_backend(NAME SOURCE...): the sources of a back end in the folder NAME of adapters/, or its absent.cpp.
function(dpwa_backend name)
  string(TOUPPER ${name} upper)
  set(sources ${ARGN})
  if(DPWA_${upper}_ABSENT)
    set(sources absent.cpp)
  endif()
  list(TRANSFORM sources PREPEND ${name}/)
  target_sources(dpwa_adapters PRIVATE ${sources})
endfunction()
