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

# lacks_cuda_toolkit FOLDER: a CUDA build of torch can be used only with the CUDA toolkit installed.
lacks_cuda_toolkit() {
  local package=$1/../../..
  [[ -e $package/lib/libtorch_cuda.so ]] || return 1
  ! command -v nvcc >/dev/null && [[ ! -x ${CUDA_HOME:-/usr/local/cuda}/bin/nvcc ]]
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
  elif [[ -n ${Torch_DIR:-} ]]; then
    fail "Torch_DIR: there is no TorchConfig.cmake in $Torch_DIR"
    return 2
  elif folder=$(torch_of_python python3) && [[ $folder != "$venv"/* ]]; then
    version=$(torch_version "$folder")
    if ! version_at_least "${version:-0}" "$torch_minimum"; then
      say "the active Python has torch ${version:-of unknown version}, older than $torch_minimum: not used"
      return 1
    elif lacks_cuda_toolkit "$folder"; then
      say "the active Python has a CUDA build of torch $version, and there is no CUDA toolkit: not used"
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
