#!/usr/bin/env bash
# Compiles and links everything against a CUDA build of LibTorch, on a machine with or without a GPU, in an environment of
# its own: what is written for GPUs cannot rot unnoticed. It shares environments and the build folder with
# check_torch_versions.sh. Needs 10 GB of disk and x86-64. It is safe to run it again: what is there is kept.
#
# usage: scripts/build_cuda.sh [--torch VERSION] [--target NAME]... [--jobs N]
#
#   --torch    a version of the package index; default: that of requirements.txt
#   --target   build this alone, such as dpwa_adapters
set -euo pipefail
# shellcheck source=lib/common.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib/common.sh"
# shellcheck source=lib/torch.sh
source "$repository/scripts/lib/torch.sh"
# shellcheck source=lib/torch_environment.sh
source "$repository/scripts/lib/torch_environment.sh"

version=$(sed -n 's/^torch==//p' "$repository/requirements.txt")
targets=()
ninja_options=()
while (($# > 0)); do
  case $1 in
    -h | --help) show_help; exit 0 ;;
    --torch)
      needs_value "$1" $#
      version=$2
      [[ $version == [0-9]* ]] || usage_error "--torch '$version'; accepted: a version"
      shift
      ;;
    --target) needs_value "$1" $#; targets+=("$2"); shift ;;
    --jobs) needs_value "$1" $#; ninja_options+=(-j "$2"); shift ;;
    *) usage_error "unknown argument '$1'" ;;
  esac
  shift
done

[[ -x $venv/bin/pip ]] || die 'run scripts/setup.sh first'
end_jobs_at_exit 'what is there is kept: run it again to continue'
heading "build against CUDA: torch $version"
configure_with_torch "$version" || die 'not configured'
grep -q '^DPWA_CUDA:INTERNAL=ON$' "$torch_build/CMakeCache.txt" || die "torch $version of this index is no CUDA build"
cmake --build "$torch_build" "${targets[@]/#/--target=}" -- "${ninja_options[@]}" >&2 || die 'it did not build'
ok "everything asked for compiles and links against torch $version with CUDA ($SECONDS s)"
