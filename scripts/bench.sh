#!/usr/bin/env bash
# Sets up, builds and runs the benchmarks: memory bandwidth, bare sockets, dpwa's pulls in turn with them,
# the cost of a step, training steps of backend collective beside DistributedDataParallel, pushes and pulls of
# backend kvstore, and the peers that are installed. Writes bench.json, report.md and bench.png into runs/bench/TIME.
#
# usage: scripts/bench.sh [--quick | --full] [--peers] [--update-docs] [--ps-lite DIR] [--against BENCH.json]
#
#   --quick         fewer sizes and shorter windows: about two minutes on two cores
#   --full          also 1 GB and 100 million parameters, and longer windows
#   --peers         installs Open MPI first if it is missing (apt)
#   --update-docs   also writes the measured part of docs/PERFORMANCE.md, its data and its plot
#   --ps-lite DIR   compares backend kvstore with the ps-lite that is built below DIR (include/, lib/libps.a), which
#                   is not installed by this script; it needs ZeroMQ and protobuf
#   --against FILE  compares with an earlier bench.json at the end; exit code 1 when a figure got worse
#
# Close other programs first. The report states when the machine was not quiet.
set -euo pipefail
# shellcheck source=lib/common.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib/common.sh"
# shellcheck source=lib/system_packages.sh
source "$repository/scripts/lib/system_packages.sh"
# shellcheck source=lib/torch.sh
source "$repository/scripts/lib/torch.sh"

mode=default peers=no update_docs=no against='' ps_lite=''
while (($# > 0)); do
  case $1 in
    -h | --help) show_help; exit 0 ;;
    --quick) mode=quick ;;
    --full) mode=full ;;
    --peers) peers=yes ;;
    --update-docs) update_docs=yes ;;
    --ps-lite) needs_value "$1" $#; ps_lite=$2; shift ;;
    --against) needs_value "$1" $#; against=$2; shift ;;
    *) usage_error "unknown argument '$1'" ;;
  esac
  shift
done
[[ -z $ps_lite || -d $ps_lite/include/ps ]] || usage_error "--ps-lite: there is no folder $ps_lite/include/ps"
[[ -z $against || -f $against ]] || usage_error "--against: there is no file $against"

"$repository/scripts/setup.sh"
"$repository/scripts/build.sh" release --target dpwa_benchmarks
python=$venv/bin/python
bench=$repository/build/release/bin/dpwa-bench
run_dir=$(new_run_folder bench)
options=(--mode "$mode" --bench "$bench")

# build_mpi_peer: builds the Open MPI program if its compiler is installed.
build_mpi_peer() {
  command -v mpicxx >/dev/null && command -v mpirun >/dev/null || return 1
  run_logged 'building the Open MPI peer' bench-mpi \
    mpicxx -O3 -march=native -std=c++20 -I "$repository" -o "$run_dir/mpi_sendrecv" \
    "$repository/bench/peers/mpi_sendrecv.cpp"
}

heading 'peers'
if [[ $peers == yes ]] && ! command -v mpicxx >/dev/null; then
  ((EUID == 0)) || sudo -v
  { run_logged 'apt-get update' apt-update as_root apt-get update &&
    run_logged 'apt-get install openmpi-bin libopenmpi-dev' apt-openmpi apt_install openmpi-bin libopenmpi-dev; } ||
    warn 'Open MPI could not be installed'
fi
if build_mpi_peer; then
  options+=(--mpi "$run_dir/mpi_sendrecv")
else
  say 'Open MPI: not installed, left out (scripts/bench.sh --peers installs it)'
fi
if [[ -z $ps_lite ]]; then
  say 'ps-lite: not named, left out (scripts/bench.sh --ps-lite DIR)'
elif run_logged 'building the ps-lite peer' bench-ps-lite \
  c++ -std=c++17 -O3 -march=native -I "$repository" -I "$ps_lite/include" -o "$run_dir/ps_lite_push_pull" \
  "$repository/bench/peers/ps_lite_push_pull.cpp" "$ps_lite/lib/libps.a" -lzmq -lprotobuf-lite -lpthread; then
  options+=(--ps-lite "$run_dir/ps_lite_push_pull")
else
  warn 'the ps-lite peer could not be built, left out'
fi
if run_logged 'building what gives peers reno' bench-reno \
  c++ -std=c++20 -shared -fPIC -O2 -o "$run_dir/reno_sockets.so" "$repository/bench/peers/reno_sockets.cpp" -ldl; then
  options+=(--reno-sockets "$run_dir/reno_sockets.so")
fi
torch_python=''
for candidate in "$python" python3; do
  if torch_of_python "$candidate" >/dev/null; then torch_python=$candidate; break; fi
done
if [[ -n $torch_python ]]; then
  options+=(--torch-python "$torch_python")
else
  say 'c10d and DistributedDataParallel: no Python with torch, left out'
fi

heading "benchmarks: $mode"
(exec_python "$python" "$repository/scripts/bench_suite.py" "$run_dir" "${options[@]}") || die "the benchmarks failed; see $run_dir"
rm -f "$run_dir/mpi_sendrecv" "$run_dir/ps_lite_push_pull" "$run_dir/reno_sockets.so"

heading 'result'
report=("$run_dir")
[[ $update_docs == no ]] || report+=(--docs "$repository/docs/PERFORMANCE.md")
(exec_python "$python" "$repository/scripts/bench_report.py" "${report[@]}")
(exec_python "$python" "$repository/scripts/plot_bench.py" "$run_dir")
[[ $update_docs == no ]] || cp "$run_dir/bench.png" "$repository/docs/images/benchmark.png"
ok "benchmarks complete ($SECONDS s); everything is in $run_dir"
[[ -z $against ]] || "$bench" compare "$against" "$run_dir/bench.json"
