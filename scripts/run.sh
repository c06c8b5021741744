#!/usr/bin/env bash
# Starts every node of a cluster file that lives on this host: one process a node, pinned to its cores
# with as many threads, a log each. Waits for them; Ctrl-C or SIGTERM stops all of them gracefully.
#
# usage: scripts/run.sh CLUSTER.yaml [--only NODE]... [--run-dir DIR] [--detach] [-- TRAINER ARGUMENTS]
#
#   --only      just this node: to start again one that has gone, in the run of the others
#   --run-dir   where logs, metrics and results go (default runs/TIME, linked as runs/latest)
#   --detach    returns once the nodes are started; scripts/stop.sh ends them
#
# Environment: DPWA_TRAIN and DPWA_CLI name other binaries than those of build/release/bin.
# Exit code 0: every node succeeded; 1: one failed; 2: wrong usage or configuration, nothing was
# started; 130/143: stopped by SIGINT/SIGTERM.
set -euo pipefail
# shellcheck source=lib/common.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib/common.sh"
# shellcheck source=lib/processes.sh
source "$repository/scripts/lib/processes.sh"
# shellcheck source=lib/node_process.sh
source "$repository/scripts/lib/node_process.sh"
# shellcheck source=lib/run_folder.sh
source "$repository/scripts/lib/run_folder.sh"

trainer=${DPWA_TRAIN:-$repository/build/release/bin/dpwa-train}
cli=${DPWA_CLI:-$repository/build/release/bin/dpwa}
grace=10

cluster='' run_dir='' detach=no
only=() arguments=()
while (($# > 0)); do
  case $1 in
    -h | --help) show_help; exit 0 ;;
    --only=*) only+=("${1#*=}") ;;
    --only) needs_value "$1" $#; only+=("$2"); shift ;;
    --run-dir) needs_value "$1" $#; run_dir=$2; shift ;;
    --detach) detach=yes ;;
    --) shift; arguments=("$@"); break ;;
    -*) usage_error "unknown option '$1' (the trainer's come after --)" ;;
    *) [[ -z $cluster ]] || usage_error "one cluster file, not '$1' as well"; cluster=$1 ;;
  esac
  shift
done
[[ -n $cluster ]] || usage_error 'the cluster file is missing'
[[ -f $cluster ]] || usage_error "there is no file $cluster"
for argument in "${arguments[@]}"; do
  case ${argument%%=*} in
    --config | --name) usage_error "$argument is run.sh's to give" ;;
    --run-dir) usage_error '--run-dir goes before --' ;;
  esac
done
for binary in "$trainer" "$cli"; do
  [[ -x $binary ]] || die "there is no $binary: run scripts/build.sh first" 2
done

# Names and cores (comma-separated; empty for -) of the nodes here; also validates the file.
listing=$("$cli" config nodes "$cluster" --local) || exit 2
declare -A cores_of
names=()
while IFS=$'\x1f' read -r name cores; do
  names+=("$name")
  cores_of[$name]=$cores
done < <(awk -F'\t' -v OFS=$'\x1f' '$NF == "local" {print $1, $4 == "-" ? "" : $4}' <<<"$listing")
((${#names[@]} > 0)) || usage_error "no node of $cluster lives on this host"
for name in "${only[@]}"; do
  [[ -n ${cores_of[$name]+there} ]] || usage_error "--only $name: the nodes here are ${names[*]}"
done
local_nodes=${#names[@]}
((${#only[@]} == 0)) || names=("${only[@]}")

state=$(state_folder "$cluster")

refuse_second_start() {
  local name running=()
  for name in "${names[@]}"; do
    if running_pid "$state/$name.process" >/dev/null; then running+=("$name"); fi
  done
  ((${#running[@]} == 0)) || die "already running: ${running[*]} (scripts/stop.sh $cluster ends them)" 2
}
refuse_second_start

if [[ -z $run_dir && ${#only[@]} -gt 0 && -d $(cat "$state/run_dir" 2>/dev/null) ]]; then
  run_dir=$(<"$state/run_dir")  # that of the others
elif [[ -z $run_dir ]]; then
  run_dir=$(new_run_folder)
  link_latest "$run_dir"
fi
mkdir -p "$run_dir"
run_dir=$(realpath -- "$run_dir")

if [[ $detach == yes ]]; then
  log=$run_dir/run${only[*]:+-${only[*]}}.log
  rm -f "$run_dir/.started"
  # A second run.sh, in a session of its own, waits for the nodes and writes down how each ended.
  setsid "$0" "$cluster" "${only[@]/#/--only=}" --run-dir "$run_dir" -- "${arguments[@]}" </dev/null >"$log" 2>&1 &
  waiter=$!
  while [[ ! -e $run_dir/.started ]] && kill -0 "$waiter" 2>/dev/null; do sleep 0.05; done
  if [[ ! -e $run_dir/.started ]]; then
    code=0
    wait "$waiter" || code=$?
    cat "$log" >&2
    exit "$code"
  fi
  cat "$log" >&2
  ok "detached; scripts/stop.sh $cluster ends them, $log tells how each ended"
  exit 0
fi

mkdir -p "$state"
exec {lock}>"$(dirname -- "$state")/lock"
flock "$lock"
refuse_second_start
printf '%s\n' "$run_dir" >"$state/run_dir"
[[ $run_dir/cluster.yaml -ef $cluster ]] || cp -- "$cluster" "$run_dir/cluster.yaml"

given_threads=no
for argument in "${arguments[@]}"; do
  [[ ${argument%%=*} != --threads ]] || given_threads=yes
done

declare -A node_of  # by pid
failures=0 stopped=0
signal=''
trap 'signal=INT' INT
trap 'signal=TERM' TERM HUP
trap '((${#node_of[@]} == 0)) || stop_nodes "$state" "$grace" "${names[@]}"' EXIT  # whatever ends this script

heading "run: ${#names[@]} node(s) of $cluster"
for name in "${names[@]}"; do start_node "$name" "${cores_of[$name]}"; done
touch "$run_dir/.started"
flock -u "$lock"

stopping=no
while ((${#node_of[@]} > 0)); do
  if [[ -n $signal && $stopping == no ]]; then
    stopping=yes
    stop_nodes "$state" "$grace" "${names[@]}" || true
  fi
  for pid in "${!node_of[@]}"; do
    process_start "$pid" >/dev/null || note_end "$pid"
  done
  ((${#node_of[@]} == 0)) || sleep 0.1
done
forget_nodes "$state" "${names[@]}"
rm -f "$run_dir/.started"

case $signal in
  INT) exit 130 ;;
  TERM) exit 143 ;;
esac
if ((failures == 0 && stopped > 0)); then
  warn "$stopped of ${#names[@]} node(s) stopped; $run_dir"
  exit 143
fi
((failures == 0)) || die "$failures of ${#names[@]} node(s) failed; $run_dir"
ok "all ${#names[@]} node(s) succeeded; $run_dir"
