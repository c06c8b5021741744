# What a CUDA build of LibTorch asks for. dpwa has no source in CUDA: it needs the headers and the runtime library alone,
# but LibTorch's own CMake files look for a whole toolkit, with its compiler.

# dpwa_prepare_cuda(): before find_package(Torch). Helps these files to find the toolkit.
macro(dpwa_prepare_cuda)
  # CMake before 3.26 does not know that nvcc compiles C++20, and fails on "CUDA20".
  if(NOT DEFINED CMAKE_CUDA_STANDARD)
    set(CMAKE_CUDA_STANDARD 17)
  endif()
  # They take the folder above nvcc for the toolkit, which is wrong where nvcc is a script on the PATH.
  if(NOT DEFINED CUDA_TOOLKIT_ROOT_DIR)
    set(dpwa_version "")
    if(EXISTS "${Torch_DIR}/../../../version.py")
      file(STRINGS "${Torch_DIR}/../../../version.py" dpwa_version REGEX "^cuda[^=]*= *'")
      string(REGEX REPLACE "^[^']*'([0-9.]*).*" "\\1" dpwa_version "${dpwa_version}")
    endif()
    foreach(dpwa_folder IN ITEMS "$ENV{CUDA_HOME}" "$ENV{CUDA_PATH}" "/usr/local/cuda-${dpwa_version}" /usr/local/cuda)
      if(EXISTS "${dpwa_folder}/bin/nvcc" AND EXISTS "${dpwa_folder}/include/cuda_runtime.h")
        set(CUDA_TOOLKIT_ROOT_DIR "${dpwa_folder}" CACHE PATH "The CUDA toolkit")
        break()
      endif()
    endforeach()
  endif()
  # So that the compiler is the one of that folder, and its version that of the headers.
  if(DEFINED CUDA_TOOLKIT_ROOT_DIR AND NOT DEFINED CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX}
     AND EXISTS "${CUDA_TOOLKIT_ROOT_DIR}/bin/nvcc")
    set(CMAKE_CUDA_COMPILER "${CUDA_TOOLKIT_ROOT_DIR}/bin/nvcc" CACHE FILEPATH "")
  endif()
  # The toolkit may lack NVRTC, whose library comes with the wheels too.
  if(NOT CUDA_NVRTC_LIB AND Torch_DIR)
    file(GLOB dpwa_nvrtc "${CUDA_TOOLKIT_ROOT_DIR}/lib64/libnvrtc.so" "${Torch_DIR}/../../../../nvidia/cu*/lib/libnvrtc.so.*"
         "${Torch_DIR}/../../../../nvidia/cuda_nvrtc/lib/libnvrtc.so.*")
    if(dpwa_nvrtc)
      list(GET dpwa_nvrtc 0 dpwa_nvrtc)
      get_filename_component(dpwa_nvrtc "${dpwa_nvrtc}" ABSOLUTE)
      set(CUDA_NVRTC_LIB "${dpwa_nvrtc}" CACHE FILEPATH "")
    endif()
  endif()
endmacro()

# dpwa_find_cuda_header(VARIABLE HEADER): its folder, in the toolkit or among the wheels beside LibTorch.
function(dpwa_find_cuda_header variable header)
  get_filename_component(torch "${TORCH_INSTALL_PREFIX}" ABSOLUTE)
  file(GLOB wheels "${torch}/../nvidia/*/include")
  find_path(${variable} ${header} HINTS ${CUDAToolkit_INCLUDE_DIRS} ${CUDA_INCLUDE_DIRS} PATHS ${wheels})
  mark_as_advanced(${variable})
endfunction()
