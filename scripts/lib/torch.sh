# shellcheck shell=bash disable=SC2034,SC2154  # names are shared between the files
# Finds LibTorch without importing torch, and installs the CPU build into the private environment.

torch_minimum=2.11
torch_record=$venv/torch_dir  # one line: the folder of TorchConfig.cmake that builds use

# torch_version FOLDER: the version beside TorchConfig.cmake.
torch_version() {
  sed -n 's/^set(PACKAGE_VERSION "\([0-9.]*\).*/\1/p' "$1/TorchConfigVersion.cmake" 2>/dev/null
}

# torch_in PREFIX: the folder of TorchConfig.cmake under a CMake prefix.
torch_in() {
  local folder
  for folder in "$1" "$1/Torch" "$1/share/cmake/Torch" "$1/lib/cmake/Torch"; do
    if [[ -f $folder/TorchConfig.cmake ]]; then
      (cd -- "$folder" && pwd)
      return 0
    fi
  done
  return 1
}

# torch_from_environment: Torch_DIR, then the entries of CMAKE_PREFIX_PATH.
torch_from_environment() {
  local prefix prefixes=${CMAKE_PREFIX_PATH:-}
  if [[ -n ${Torch_DIR:-} ]]; then
    torch_in "$Torch_DIR"
    return
  fi
  while IFS= read -r prefix; do
    [[ -n $prefix ]] && torch_in "$prefix" && return 0
  done <<<"${prefixes//[:;]/$'\n'}"
  return 1
}

# torch_of_python PYTHON: the torch that PYTHON would import.
torch_of_python() {
  local package
  package=$("$1" -c '
import importlib.util
spec = importlib.util.find_spec("torch")
print(spec.submodule_search_locations[0] if spec and spec.origin else "")' 2>/dev/null) || return 1
  [[ -n $package ]] && torch_in "$package"
}

# cuda_of TORCH_PACKAGE: the CUDA version that it was built with, such as 13.0; nothing: a CPU build, or not a wheel.
cuda_of() { sed -nE "s/^cuda[^=]*= *'([0-9]+\.[0-9]+)'.*/\1/p" "$1/version.py" 2>/dev/null || true; }

# cuda_toolkit VERSION: the folder of the toolkit, as cmake/DpwaCuda.cmake finds it; 1: there is none.
cuda_toolkit() {
  local folder
  for folder in "${CUDA_HOME:-}" "${CUDA_PATH:-}" "/usr/local/cuda-$1" /usr/local/cuda; do
    if [[ -x $folder/bin/nvcc && -e $folder/include/cuda_runtime.h ]]; then
      printf '%s\n' "$folder"
      return 0
    fi
  done
  folder=$(command -v nvcc) || return 1
  folder=$(dirname -- "$(dirname -- "$(realpath -- "$folder")")")
  [[ -e $folder/include/cuda_runtime.h ]] && printf '%s\n' "$folder"
}

# cuda_of_toolkit FOLDER: the CUDA version of its headers, such as 13.0; nothing: they do not say.
cuda_of_toolkit() {
  awk '$1 == "#define" && $2 == "CUDART_VERSION" {print int($3 / 1000) "." int($3 % 1000 / 10)}' \
    "$1/include/cuda_runtime_api.h" 2>/dev/null || true
}

# missing_of_cuda FOLDER: what a CUDA build of torch needs beside itself and is not there, one a line: "FILE: PACKAGE".
# CMake would fail on it, and name a variable of its own.
missing_of_cuda() {
  local package=$1/../../.. cuda suffix toolkit have name debian files
  [[ -e $package/lib/libtorch_cuda.so ]] || return 0
  cuda=$(cuda_of "$package")
  suffix=${cuda:+-${cuda/./-}}
  toolkit=$(cuda_toolkit "$cuda") || toolkit=/usr/local/cuda${cuda:+-$cuda}
  have=$(cuda_of_toolkit "$toolkit")
  if [[ -n $cuda && -n $have && ${have%.*} != "${cuda%.*}" ]]; then
    echo "a toolkit of CUDA $cuda, as $toolkit is one of CUDA $have: cuda-nvcc$suffix cuda-crt$suffix cuda-cudart-dev$suffix"
    return 0
  fi
  # NAME PACKAGE FILE...: one of these files will do.
  while read -r name debian files; do
    # shellcheck disable=SC2086  # patterns
    compgen -G "$toolkit/$name" >/dev/null || { [[ -n $files ]] && compgen -G "$package/../nvidia/$files" >/dev/null; } ||
      echo "$toolkit/$name: $debian$suffix"
  done <<'END'
bin/nvcc cuda-nvcc
include/crt/host_config.h cuda-crt
include/device_functions.h cuda-crt
include/cuda_runtime.h cuda-cudart-dev
lib64/libcudart.so cuda-cudart-dev
lib64/libnvrtc.so cuda-nvrtc-dev */lib/libnvrtc.so.*
include/cusparse.h libcusparse-dev */include/cusparse.h
END
}

# can_use_cuda FOLDER: true for a CPU build, and for a CUDA build that has all it needs; else says what is missing, and
# how to get it.
can_use_cuda() {
  local missing line
  mapfile -t missing < <(missing_of_cuda "$1")
  ((${#missing[@]} > 0)) || return 0
  say 'this is a CUDA build of torch, which needs more than is here. Missing, and its package:'
  for line in "${missing[@]}"; do say "  $line"; done
  say "from NVIDIA's repository (https://developer.nvidia.com/cuda-downloads), or from elsewhere, with CUDA_HOME set:"
  say "  apt-get install $(printf '%s\n' "${missing[@]##*: }" | sort -u | paste -sd ' ')"
  return 1
}

# choose_torch: prints the folder to use if there is a torch outside the private environment.
# Returns 1 when there is none, 2 when the user's own choice cannot be used (and prints the reason).
choose_torch() {
  local folder version
  if folder=$(torch_from_environment); then
    version=$(torch_version "$folder")
    version_at_least "${version:-0}" "$torch_minimum" || {
      fail "Torch_DIR / CMAKE_PREFIX_PATH: torch ${version:-of unknown version} in $folder; $torch_minimum or newer is needed"
      return 2
    }
    say "torch $version of Torch_DIR / CMAKE_PREFIX_PATH: $folder"
    can_use_cuda "$folder" || {
      fail 'install what is missing, or set Torch_DIR to a CPU build, and run this again'
      return 2
    }
  elif [[ -n ${Torch_DIR:-} ]]; then
    fail "Torch_DIR: there is no TorchConfig.cmake in $Torch_DIR"
    return 2
  elif folder=$(torch_of_python python3) && [[ $folder != "$venv"/* ]]; then
    version=$(torch_version "$folder")
    if ! version_at_least "${version:-0}" "$torch_minimum"; then
      say "the active Python has torch ${version:-of unknown version}, older than $torch_minimum: not used"
      return 1
    elif ! can_use_cuda "$folder"; then
      say "so the torch $version of the active Python is not used: dpwa will be built for CPUs. Install what is missing and run this again to change that"
      return 1
    fi
    say "torch $version of the active Python: $folder"
  else
    return 1
  fi
  printf '%s\n' "$folder"
}

# cpu_torch_available NAME [INDEX OPTION...]: true when pip, with these options, would take a CPU
# build. Nothing is installed, and only metadata is downloaded where the index allows that.
cpu_torch_available() {
  local name=$1 report=$log_folder/torch-${1// /-}.json
  shift
  ! "$venv/bin/pip" install --help | grep -q fast-deps || set -- --use-feature=fast-deps "$@"
  run_logged "asking pip which torch the $name would give" "torch-$name" "$venv/bin/pip" install --dry-run \
    --no-deps --ignore-installed --report "$report" "$@" -r "$repository/requirements.txt" &&
    "$venv/bin/python" "$repository/scripts/lib/is_cpu_torch.py" "$report"
}

# install_torch: the pinned CPU torch into the private environment; never a CUDA build.
install_torch() {
  local index=${DPWA_TORCH_INDEX:-https://download.pytorch.org/whl/cpu} options=()
  if ! cpu_torch_available 'configured index'; then
    say "using PyTorch's index of CPU builds (DPWA_TORCH_INDEX names another)"
    options=(--index-url "$index")
    cpu_torch_available 'CPU index' "${options[@]}" || {
      fail 'no CPU build of torch: neither the configured index nor the CPU index has one. Set Torch_DIR to a LibTorch, or DPWA_TORCH_INDEX to an index of CPU builds'
      return 1
    }
  fi
  run_logged 'installing the CPU torch (about 200 MB)' torch-install "$venv/bin/pip" install \
    "${options[@]}" -r "$repository/requirements.txt"
}
