# shellcheck shell=bash disable=SC2034,SC2154  # names are shared between the files
# An environment of its own for one version of LibTorch, beside the one of .venv. Versions come from the package index
# that pip is set up for; on x86-64 that of Python has CUDA builds, which bring the libraries of CUDA, but neither its
# compiler nor the names that a linker looks for. Both are added here, so no toolkit of the machine is needed, and no GPU.
# After torch.sh.

torch_folders=${DPWA_TORCH_FOLDERS:-$repository/build/torch}  # FOLDER/VERSION: an environment, several GB
# All versions are compiled here: what includes no LibTorch is compiled once. As deep as build/release, so that ccache,
# which sees relative paths, gives what that folder has.
torch_build=$repository/build/torch-build

# site_packages ENVIRONMENT
site_packages() { "$1/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))'; }

# torch_versions: those of the index, newest first.
torch_versions() {
  "$venv/bin/pip" index versions torch 2>/dev/null | sed -n 's/^Available versions: //p' | tr -d ' ' | tr ',' '\n' |
    sed 's/+.*//' | sort -Vru
}

# newest_patches MINIMUM: of the versions on standard input, the newest patch of each minor one from MINIMUM on.
newest_patches() {
  local version minor seen=' '
  sort -Vru | while read -r version; do
    [[ $version =~ ^([0-9]+\.[0-9]+)\.[0-9]+$ ]] || continue
    minor=${BASH_REMATCH[1]}
    [[ $seen != *" $minor "* ]] && version_at_least "$minor" "$1" || continue
    seen+="$minor "
    printf '%s\n' "$version"
  done
}

# choose_versions MINIMUM: `versions` keeps those that the user has named; else it gets these newest patches of the index.
choose_versions() {
  ((${#versions[@]} == 0)) || return 0
  mapfile -t versions < <(torch_versions | newest_patches "$1" | sort -V)
  ((${#versions[@]} > 0)) || die "the package index names no torch from $1 on"
}

# install_torch_version FOLDER VERSION: FOLDER/venv has this torch, and FOLDER/cuda the toolkit of a CUDA build.
install_torch_version() {
  local folder=$1 version=$2 package cuda install
  install=("$venv/bin/pip" --python "$folder/venv/bin/python" install --no-compile)
  if [[ ! -f $folder/installed || $(<"$folder/installed") != "$version" ]]; then
    mkdir -p "$folder"
    rm -f "$folder/installed"
    [[ -x $folder/venv/bin/python ]] || python3 -m venv --without-pip "$folder/venv" || return 1
    # "===" takes this very text: no build of the same version with a local name, such as +cpu.
    run_logged "installing torch $version (with CUDA: several GB)" "torch-$version" "${install[@]}" "torch===$version" ||
      return 1
    package=$(site_packages "$folder/venv")/torch
    cuda=$(cuda_of "$package")
    if [[ -n $cuda ]]; then
      [[ $cuda == 13.* ]] || { fail "torch $version is for CUDA $cuda; this script knows the packages of CUDA 13"; return 1; }
      run_logged "installing the compiler of CUDA $cuda" "nvcc-$version" "${install[@]}" "nvidia-cuda-nvcc==$cuda.*" \
        "nvidia-cuda-crt==$cuda.*" "nvidia-nvvm==$cuda.*" "nvidia-cuda-cccl==$cuda.*" || return 1
      make_toolkit "$package/../nvidia/cu13" "$folder/cuda"
    fi
    printf '%s\n' "$version" >"$folder/installed"
  fi
}

# make_toolkit FROM TO: the packages of CUDA in FROM as a toolkit in TO: libraries by the names that linkers look for.
make_toolkit() {
  local from to=$2 file name
  from=$(cd -- "$1" && pwd) || return 1
  rm -rf "$to"
  mkdir -p "$to/lib64"
  ln -s lib64 "$to/lib"  # where nvcc 13.2 looks
  for file in nvvm include; do ln -s "$from/$file" "$to/$file"; done
  cp -rl "$from/bin" "$to/bin"  # nvcc looks for the rest beside the file that it is
  for file in "$from"/lib/lib*; do
    name=${file##*/}
    ln -sf "$file" "$to/lib64/$name"
    [[ $name != *.so.* ]] || ln -sf "$file" "$to/lib64/${name%%.so.*}.so"
  done
}

# options_of_environment FOLDER: what CMake is told of it, a word a line.
options_of_environment() {
  printf -- '-D\nTorch_DIR=%s\n' "$(site_packages "$1/venv")/torch/share/cmake/Torch"
  [[ ! -d $1/cuda ]] || printf -- '-D\nCUDA_TOOLKIT_ROOT_DIR=%s\n' "$1/cuda"
}

# configure_with_torch VERSION: its environment is there, and torch_build is configured for it.
configure_with_torch() {
  local version=$1 folder=$torch_folders/$1 options
  install_torch_version "$folder" "$version" || return 1
  mapfile -t options < <(options_of_environment "$folder")
  if [[ -f $torch_build/CMakeCache.txt ]] &&
    ! grep -q "^Torch_DIR:[A-Z]*=${options[1]#*=}$" "$torch_build/CMakeCache.txt"; then
    rm -rf "$torch_build/CMakeCache.txt" "$torch_build/CMakeFiles" "$torch_build/build.ninja"
  fi
  [[ ${DPWA_WERROR:-} != 1 ]] || options+=(-D DPWA_WERROR=ON)
  cd "$repository"  # where the presets are
  run_logged "configuring for torch $version" "configure-torch-$version" cmake --preset release -B "$torch_build" \
    "${options[@]}"
}
