# shellcheck shell=bash disable=SC2034,SC2154  # names are shared between the files
# An environment of its own for one version of LibTorch, beside the one of .venv. Versions come from the package index
# that pip is set up for; on x86-64 that of Python has CUDA builds, which bring the libraries of CUDA, but neither its
# compiler nor the names that a linker looks for. Both are added here, so no toolkit of the machine is needed, and no GPU.
# After torch.sh.

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

# install_torch_version FOLDER VERSION: FOLDER/venv has this torch, and FOLDER/cuda the toolkit of a CUDA build.
install_torch_version() {
  local folder=$1 version=$2 package cuda pip=$1/venv/bin/pip
  if [[ ! -f $folder/installed || $(<"$folder/installed") != "$version" ]]; then
    mkdir -p "$folder"
    rm -f "$folder/installed"
    [[ -x $pip ]] || run_logged "creating ${folder##*/}/venv" torch-venv python3 -m venv --clear "$folder/venv" || return 1
    # "===" takes this very text: no build of the same version with a local name, such as +cpu.
    run_logged "installing torch $version (with CUDA: several GB)" "torch-$version" "$pip" install "torch===$version" ||
      return 1
    package=$(site_packages "$folder/venv")/torch
    cuda=$(cuda_of "$package")
    if [[ -n $cuda ]]; then
      [[ $cuda == 13.* ]] || { fail "torch $version is for CUDA $cuda; this script knows the packages of CUDA 13"; return 1; }
      run_logged "installing the compiler of CUDA $cuda" "nvcc-$version" "$pip" install "nvidia-cuda-nvcc==$cuda.*" \
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
  for file in nvvm include; do ln -s "$from/$file" "$to/$file"; done
  cp -rl "$from/bin" "$to/bin"  # nvcc looks for the rest beside the file that it is
  for file in "$from"/lib/lib*; do
    name=${file##*/}
    ln -sf "$file" "$to/lib64/$name"
    [[ $name != *.so.* ]] || ln -sf "$file" "$to/lib64/${name%%.so.*}.so"
  done
}

# options_of_environment FOLDER: the options with which CMake builds against it, one a line.
options_of_environment() {
  local folder=$1 package
  package=$(site_packages "$folder/venv")/torch
  printf '%s\n' -D "Torch_DIR=$package/share/cmake/Torch"
  [[ ! -d $folder/cuda ]] || printf '%s\n' -D "CUDA_TOOLKIT_ROOT_DIR=$folder/cuda"
}
