# Run by CTest with cmake -P; the variables come from CMakeLists.txt beside it.

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "exit code ${result} from: ${command}")
  endif()
endfunction()

# configure(FOLDER OPTION...): the consumer in WORK/FOLDER; its result and messages in `result` and `errors`.
function(configure folder)
  execute_process(COMMAND ${CMAKE_COMMAND} -S "${SOURCE}" -B "${WORK}/${folder}" -G "${GENERATOR}"
      "-DCMAKE_PREFIX_PATH=${prefix}" "-DCMAKE_BUILD_TYPE=${BUILD_TYPE}"
      "-DCMAKE_CXX_COMPILER=${COMPILER}" "-DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER}" ${ARGN}
    RESULT_VARIABLE result ERROR_VARIABLE errors)
  set(result ${result} PARENT_SCOPE)
  set(errors "${errors}" PARENT_SCOPE)
endfunction()

function(require_configured)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "the consumer does not configure: ${errors}")
  endif()
endfunction()

file(REMOVE_RECURSE "${WORK}")
run(${CMAKE_COMMAND} --install "${BUILD}" --prefix "${WORK}/first")
set(prefix "${WORK}/prefix")
file(RENAME "${WORK}/first" "${prefix}")  # an installed dpwa may be moved

# Without a list of components: everything.
configure(build "-DTorch_DIR=${TORCH_DIR}")
require_configured()
run(${CMAKE_COMMAND} --build "${WORK}/build")
run("${WORK}/build/average")
if(TORCH_DIR)
  run("${WORK}/build/train")
endif()

# core needs no LibTorch, nor does it look for one; and adapters may be there or not.
set(no_torch "-DCMAKE_DISABLE_FIND_PACKAGE_Torch=ON")
configure(core_only "-DCOMPONENTS=core" ${no_torch})
require_configured()
run(${CMAKE_COMMAND} --build "${WORK}/core_only")
run("${WORK}/core_only/average")
if(EXISTS "${WORK}/core_only/train")
  message(FATAL_ERROR "COMPONENTS core brought the adapters along")
endif()
configure(perhaps "-DCOMPONENTS=core" "-DOPTIONAL_COMPONENTS=adapters" ${no_torch})
require_configured()

# What is not there is named.
configure(unknown "-DCOMPONENTS=telepathy" ${no_torch})
string(REGEX REPLACE "[ \n]+" " " errors "${errors}")
if(result EQUAL 0 OR NOT errors MATCHES "there is no component 'telepathy' here; installed: interpolation, core")
  message(FATAL_ERROR "an unknown component: ${result}, ${errors}")
endif()

# The programs find their libraries by themselves.
set(bin "${prefix}/bin")
set(plain ${CMAKE_COMMAND} -E env --unset=LD_LIBRARY_PATH)
run(${plain} "${bin}/dpwa" --version)
run(${plain} "${bin}/dpwa" config check "${prefix}/share/dpwa/samples/cluster.yaml")
if(TORCH_DIR)
  run(${plain} "${bin}/dpwa-train" --version)
  run(${plain} "${bin}/dpwa-bench" step --help)
endif()
foreach(file docs/OPERATIONS.md samples/two-hosts.yaml README.md LICENSE scripts/prepare_svi_data.py
             scripts/requirements-svi.txt)
  if(NOT EXISTS "${prefix}/share/dpwa/${file}")
    message(FATAL_ERROR "not installed: share/dpwa/${file}")
  endif()
endforeach()

# The scripts find the programs, and write nothing into the install tree.
set(elsewhere "${WORK}/elsewhere")
file(MAKE_DIRECTORY "${elsewhere}")
execute_process(COMMAND "${PYTHON}" "${FREE_PORTS}" 2 OUTPUT_VARIABLE port OUTPUT_STRIP_TRAILING_WHITESPACE)
run("${bin}/dpwa" init --nodes 2 --port ${port} -o "${elsewhere}/cluster.yaml")
set(scripts ${CMAKE_COMMAND} -E chdir "${elsewhere}" ${plain} --unset=DPWA_CLI --unset=DPWA_TRAIN
    "XDG_STATE_HOME=${WORK}/state")
if(TORCH_DIR)
  set(arguments --data synthetic --steps 20 --quiet)
  set(long_run --data synthetic --steps 12000 --step-time 5 --quiet)
else()
  list(APPEND scripts "DPWA_TRAIN=/bin/true")
endif()
file(GLOB_RECURSE before LIST_DIRECTORIES true "${prefix}/*")
run(${scripts} "${prefix}/share/dpwa/scripts/run.sh" cluster.yaml -- ${arguments})
run(${scripts} "${prefix}/share/dpwa/scripts/run.sh" cluster.yaml --detach -- ${long_run})  # asks the nodes
run(${scripts} "${prefix}/share/dpwa/scripts/stop.sh" cluster.yaml)
# No data in its own folder: exit code 1, after it has found its parts.
execute_process(COMMAND ${scripts} "${prefix}/share/dpwa/scripts/prepare_data.sh" mnist --from .
  RESULT_VARIABLE result ERROR_VARIABLE errors)
if(NOT result EQUAL 1 OR NOT errors MATCHES "neither train-images-idx3-ubyte nor")
  message(FATAL_ERROR "the installed prepare_data.sh: ${result}, ${errors}")
endif()
file(GLOB_RECURSE after LIST_DIRECTORIES true "${prefix}/*")
if(NOT before STREQUAL after)
  message(FATAL_ERROR "the scripts wrote into the install tree")
endif()
foreach(file "${elsewhere}/runs/latest/w2.log" "${WORK}/state/dpwa")
  if(NOT EXISTS "${file}")
    message(FATAL_ERROR "there is no ${file}")
  endif()
endforeach()
