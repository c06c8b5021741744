#!/usr/bin/env bash
# Builds the benchmarks against a CUDA build of LibTorch and measures whole training steps on a GPU: each back end beside
# the plain loop, a loop that copies all parameters to the host after each step, and DistributedDataParallel of Python.
# Writes bench.json and table.txt into a folder and prints the table. Takes 8 minutes at most, the build included: what
# does not fit is left out, and said. A build that takes longer goes on in the next call.
#
# usage: scripts/bench_gpu.sh [--device cuda|cpu] [--quick] [--build-only] [--run-dir DIR] [--jobs N]
#
#   --device      cuda (default), cuda:1, ..., or cpu: tries the script itself, with the build of scripts/build.sh
#   --quick       a small model, and windows of a moment
#   --build-only  measures nothing, and so needs no GPU
#   --run-dir     the folder of the results; default: runs/gpu/TIME
#   --jobs        compilers at once
#
# The LibTorch is that of Torch_DIR, of the active Python, or of scripts/build_cuda.sh, in this order. Nothing is
# installed. Without a GPU the exit code is 1.
set -euo pipefail
# shellcheck source=lib/common.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib/common.sh"
# shellcheck source=lib/torch.sh
source "$repository/scripts/lib/torch.sh"
# shellcheck source=lib/torch_environment.sh
source "$repository/scripts/lib/torch_environment.sh"

limit=480  # seconds for everything
limited=() # the words before a build
device=cuda mode=default run_dir='' build_only=''
ninja_options=()
while (($# > 0)); do
  case $1 in
    -h | --help) show_help; exit 0 ;;
    --device) only_once "$1"; needs_value "$1" $#; device=$2; shift ;;
    --quick) mode=quick ;;
    --build-only) build_only=yes ;;
    --run-dir) only_once "$1"; needs_value "$1" $#; run_dir=$2; shift ;;
    --jobs) needs_value "$1" $#; ninja_options=(-j "$2"); shift ;;
    *) usage_error "unknown argument '$1'" ;;
  esac
  shift
done
[[ $device =~ ^(cpu|cuda(:[0-9]+)?)$ ]] || usage_error "--device '$device' is unknown; accepted: cpu, cuda, cuda:1"

# python_of FOLDER: the Python whose torch has this folder of TorchConfig.cmake; nothing: a LibTorch without one.
python_of() {
  local candidate folder
  for candidate in python3 "$venv/bin/python" "$cuda_folder/venv/bin/python"; do
    folder=$(torch_of_python "$candidate") || continue
    if [[ $folder -ef $1 ]]; then printf '%s\n' "$candidate"; return 0; fi
  done
}

# find_cuda_torch: prints the folder of TorchConfig.cmake of a CUDA build.
find_cuda_torch() {
  local folder chosen
  chosen=$(choose_torch) || [[ -z ${Torch_DIR:-} ]] || return 1
  for folder in "$chosen" "$(torch_of_python "$cuda_folder/venv/bin/python")"; do
    if [[ -e $folder/../../../lib/libtorch_cuda.so ]]; then
      printf '%s\n' "$folder"
      return 0
    fi
    [[ -z ${Torch_DIR:-} ]] || return 1  # not another one than that which was named
  done
  return 1
}

end_jobs_at_exit 'what is compiled is kept: run it again to continue'
cuda_folder=$torch_folders/$(sed -n 's/^torch==//p' "$repository/requirements.txt")
[[ -n $build_only ]] || limited=(timeout "$limit")
not_built='the benchmarks did not build, or not in 8 minutes: what is compiled is kept, and --build-only takes its time'
if [[ $device == cpu ]]; then
  "${limited[@]}" "$repository/scripts/build.sh" release --target dpwa_benchmarks \
    "${ninja_options[@]/#-j/--jobs}" &
  wait $! || die "$not_built"
  build=$repository/build/release
  torch_python=$(python_of "$(sed -n 's/^Torch_DIR:[A-Z]*=//p' "$build/CMakeCache.txt")")
else
  [[ -n $build_only || -e /dev/nvidiactl ]] || nvidia-smi -L >/dev/null 2>&1 ||
    die 'no GPU: this machine has no NVIDIA driver; --device cpu --quick tries the script without one'
  torch_dir=$(find_cuda_torch) ||
    die 'no CUDA build of LibTorch: Torch_DIR names one, and scripts/build_cuda.sh installs one'
  torch_python=$(python_of "$torch_dir")
  [[ -n $build_only || -z $torch_python ]] ||
    "$torch_python" -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' ||
    die "no GPU: LibTorch of $torch_dir sees none; --device cpu --quick tries the script without one"
  build=$repository/build/gpu
  options=(-D "Torch_DIR=$torch_dir")
  [[ ! $torch_dir -ef $(torch_of_python "$cuda_folder/venv/bin/python") ]] ||
    mapfile -t options < <(options_of_environment "$cuda_folder")
  cd "$repository"
  run_logged 'configuring' configure-gpu cmake --preset release -B "$build" -D DPWA_TESTS=OFF \
    -D DPWA_EXAMPLES=OFF "${options[@]}" || die 'not configured'
  run_logged 'building' build-gpu "${limited[@]}" cmake --build "$build" --target dpwa_benchmarks -- \
    "${ninja_options[@]}" || die "$not_built"
fi

if [[ -n $build_only ]]; then
  ok "the benchmarks are built ($SECONDS s); nothing was measured"
  exit 0
fi
run_dir=${run_dir:-$(new_run_folder gpu)}
mkdir -p "$run_dir"
options=(--mode "$mode" --bench "$build/bin/dpwa-bench" --device "$device" --within $((limit - SECONDS)))
if [[ -n $torch_python ]]; then
  options+=(--torch-python "$torch_python")
else
  say 'DistributedDataParallel: no Python with that torch, left out'
fi
heading "training steps on $device: $mode"
python3 "$repository/scripts/bench_suite.py" "$run_dir" "${options[@]}" ||
  die "nothing could be measured; $run_dir/bench.json says why"
ok "benchmarks complete ($SECONDS s); everything is in $run_dir"
