# Compiler settings shared by every target of the project.

include(DpwaTorchUnits)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

find_program(DPWA_CCACHE ccache)
if(DPWA_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Paths relative to the checkout: every clone and worktree of one machine shares the cache.
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" CCACHE_NOHASHDIR=1
      "${DPWA_CCACHE}")
endif()

# Units that include torch take up to 1.4 GB each: as many at a time as there are processors, and as three quarters of the
# memory have room for.
include(ProcessorCount)
ProcessorCount(dpwa_processors)
cmake_host_system_information(RESULT dpwa_memory_mib QUERY TOTAL_PHYSICAL_MEMORY)
foreach(dpwa_limit_file IN ITEMS /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes)  # of a container
  if(EXISTS "${dpwa_limit_file}")
    file(STRINGS "${dpwa_limit_file}" dpwa_limit LIMIT_COUNT 1)
    if(dpwa_limit MATCHES "^[0-9]+$")
      math(EXPR dpwa_limit_mib "${dpwa_limit} >> 20")
      if(dpwa_limit_mib LESS dpwa_memory_mib)
        set(dpwa_memory_mib ${dpwa_limit_mib})
      endif()
    endif()
  endif()
endforeach()
dpwa_torch_units(dpwa_units ${dpwa_processors} ${dpwa_memory_mib})
set_property(GLOBAL PROPERTY JOB_POOLS torch_pool=${dpwa_units})

# Invariants and doctest have the path of a source in its object: a path relative to the checkout lets every clone find the
# objects in the compiler cache, and tells nothing of the machine that built a release.
add_compile_options("-fmacro-prefix-map=${PROJECT_SOURCE_DIR}=.")

if(DPWA_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "The fuzzers need clang: -D CMAKE_CXX_COMPILER=clang++, or scripts/build.sh asan, which finds one")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
if(DPWA_SANITIZE STREQUAL "address")
  # Not vptr: that check asks a pipe whether memory can be read, so to a process without free descriptors,
  # which a test makes, every object that it has not seen yet looks invalid.
  add_compile_options(-fsanitize=address,undefined -fno-sanitize=vptr -fno-sanitize-recover=undefined
    -fno-omit-frame-pointer)
  # The checks of each access and of each sum of a pointer take half of the compile time. AddressSanitizer stops at a
  # null pointer and beyond an object anyway, and the layers that read foreign bytes have these checks (dpwa/).
  add_compile_options(-fno-sanitize=null,alignment,object-size,pointer-overflow)
  # A check is a call, not code of its own: a quarter less to compile.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(--param=asan-instrumentation-with-call-threshold=0)
  else()
    add_compile_options("SHELL:-mllvm -asan-instrumentation-with-call-threshold=0")
  endif()
  add_link_options(-fsanitize=address,undefined)
elseif(DPWA_SANITIZE STREQUAL "thread")
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-Wno-tsan)
  endif()
  add_link_options(-fsanitize=thread)
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")  # its library by itself, so that a test can count what operator new gives
    execute_process(COMMAND "${CMAKE_CXX_COMPILER}" -print-file-name=libclang_rt.tsan-${CMAKE_SYSTEM_PROCESSOR}.so
                    OUTPUT_VARIABLE dpwa_tsan OUTPUT_STRIP_TRAILING_WHITESPACE)
    cmake_path(GET dpwa_tsan PARENT_PATH dpwa_tsan)
    add_link_options(-shared-libsan "LINKER:-rpath,${dpwa_tsan}")
  endif()
elseif(NOT DPWA_SANITIZE STREQUAL "")
  message(FATAL_ERROR "DPWA_SANITIZE is '${DPWA_SANITIZE}'; accepted: empty, address, thread")
endif()

# dpwa_target(NAME): warnings, as errors with DPWA_WERROR, clang's thread-safety analysis, and the include root of the
# repository.
function(dpwa_target name)
  target_compile_options(${name} PRIVATE -Wall -Wextra -Wpedantic)
  if(DPWA_WERROR)
    target_compile_options(${name} PRIVATE -Werror)
  endif()
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    target_compile_options(${name} PRIVATE -Wthread-safety)  # dpwa/base/threads.h
    # std::stable_sort of GCC 12's library calls a function that it declares deprecated.
    target_compile_options(${name} PRIVATE -Wno-deprecated-declarations)
    get_target_property(type ${name} TYPE)
    if(type STREQUAL "STATIC_LIBRARY")
      # exit() leaves the threads of nodes running: static objects that they use are never destroyed.
      target_compile_options(${name} PRIVATE -Wexit-time-destructors)
    endif()
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # GCC 12 at -O3 sees an overlapping copy in "literal" + std::string where there is none (PR 105329).
    target_compile_options(${name} PRIVATE -Wno-restrict)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT DPWA_SANITIZE STREQUAL "")
    # Instrumented code hides from GCC that Asio frees its coroutine frames as it allocated them, and
    # that the short form of a std::string is not copied beyond its end.
    target_compile_options(${name} PRIVATE -Wno-mismatched-new-delete -Wno-maybe-uninitialized -Wno-array-bounds
                           -Wno-stringop-overflow)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_UNITY_BUILD)
    # Meant for headers: of a unity build GCC takes every file for one.
    target_compile_options(${name} PRIVATE -Wno-subobject-linkage)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # GCC collects its garbage from 128 MB on, over and over, and finds next to none among declarations.
    target_compile_options(${name} PRIVATE --param=ggc-min-heapsize=600000)
  endif()
  target_compile_features(${name} PUBLIC cxx_std_20)
  get_target_property(type ${name} TYPE)
  if(type STREQUAL "EXECUTABLE")
    target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}")
  else()
    target_include_directories(${name} PUBLIC "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>"
                                              "$<INSTALL_INTERFACE:include/dpwa>")
  endif()
endfunction()

# dpwa_unit(NAME file...): these sources of a target are one translation unit in the presets, which read the headers
# that they share once. Sources of such a target that no call names are compiled alone. The names of a unit, also those
# in anonymous namespaces, differ.
function(dpwa_unit name)
  list(GET ARGN 0 first)
  string(MAKE_C_IDENTIFIER "${first}" group)
  set_target_properties(${name} PROPERTIES UNITY_BUILD_MODE GROUP)
  target_sources(${name} PRIVATE ${ARGN})
  set_source_files_properties(${ARGN} TARGET_DIRECTORY ${name} PROPERTIES UNITY_GROUP ${group})
endfunction()

# dpwa_runs_once(NAME): the code of a target that runs at the start and the end of a process, not in steps. It needs no
# -O3, and compiles in a third less time without it.
function(dpwa_runs_once name)
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()

# dpwa_torch_target(NAME): the same for a target whose sources include torch.
function(dpwa_torch_target name)
  dpwa_target(${name})
  set_target_properties(${name} PROPERTIES JOB_POOL_COMPILE torch_pool)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # GCC collects its garbage when its memory has grown by so many per cent since the last time. By default it
    # doubles, so that the 900 MB of LibTorch's headers become 1.3 GB and more.
    target_compile_options(${name} PRIVATE --param=ggc-min-expand=15)
    # The wheels of LibTorch 2.11 export functions of std::filesystem from an older library, and remove_all() jumps to
    # nowhere there: programs find those of the compiler's own library first.
    target_link_options(${name} PUBLIC LINKER:--push-state,--no-as-needed -lstdc++ LINKER:--pop-state)
  endif()
endfunction()
