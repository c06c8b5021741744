#!/usr/bin/env bash
# Starts every node of a cluster file that belongs to this host: one process per node, pinned to its cores
# with as many threads, and with its own log. Waits for them. Ctrl-C or SIGTERM stops all of them gracefully.
# With backend kvstore it starts the servers of this host first, and ends them after the last node, also after nodes
# that another run.sh has started for the same file. When a server cannot start, it ends the nodes.
#
# usage: scripts/run.sh CLUSTER.yaml [--only NODE]... [--run-dir DIR] [--detach [--wait SECONDS]]
#                       [-- TRAINER ARGUMENTS]
#
#   CLUSTER.yaml may be a pipe, as in scripts/run.sh <(ssh head cat cluster.yaml). It is read once, and the
#   nodes use the copy, cluster.yaml in the folder of the run. scripts/stop.sh accepts that copy too.
#
#   --only      only this node (or server): starts one that has ended again, in the run of the others
#   --run-dir   folder for logs, metrics and results (default runs/TIME, linked as runs/latest)
#   --detach    returns once every node trains, or names the nodes that do not, with the last line of their
#               logs; the other nodes continue. scripts/stop.sh ends them
#   --wait      longest wait of --detach (default 60 s plus start_wait of the file); 0: does not wait
#
# Environment: DPWA_TRAIN and DPWA_CLI name other binaries than those of build/release/bin, or of the bin
# folder of an installed dpwa.
# Exit code 0: every node succeeded (--detach: takes part); 1: one, or a server, failed; 2: wrong usage or configuration:
# nothing was started, or every node that failed ended with 2; 130/143: stopped by SIGINT/SIGTERM.
set -euo pipefail
# shellcheck source=lib/common.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib/common.sh"
# shellcheck source=lib/processes.sh
source "$repository/scripts/lib/processes.sh"
# shellcheck source=lib/node_process.sh
source "$repository/scripts/lib/node_process.sh"
# shellcheck source=lib/readiness.sh
source "$repository/scripts/lib/readiness.sh"
# shellcheck source=lib/piped_file.sh
source "$repository/scripts/lib/piped_file.sh"
trap '' PIPE  # a reader of the messages that goes away does not end the supervision of the nodes

trainer=${DPWA_TRAIN:-$binaries/dpwa-train}
cli=${DPWA_CLI:-$binaries/dpwa}
self=$(realpath -- "${BASH_SOURCE[0]}")
stop_script=$(dirname -- "$0")/stop.sh
grace=10

cluster='' run_dir='' detach=no wait_limit='' exit_codes=''
only=() arguments=()

# add_only NODE: adds each name once, even when it is given several times.
add_only() {
  local name
  for name in "${only[@]}"; do [[ $name != "$1" ]] || return 0; done
  only+=("$1")
}

while (($# > 0)); do
  case $1 in
    -h | --help) show_help; exit 0 ;;
    --only=*) add_only "${1#*=}" ;;
    --only) needs_value "$1" $#; add_only "$2"; shift ;;
    --run-dir) needs_value "$1" $#; only_once "$1"; run_dir=$2; shift ;;
    --detach) detach=yes ;;
    --wait)
      needs_value "$1" $#
      only_once "$1"
      [[ $2 =~ ^[0-9]{1,6}$ ]] || usage_error "--wait takes whole seconds, not '$2'"
      wait_limit=$((10#$2))
      shift
      ;;
    --exit-codes) needs_value "$1" $#; exit_codes=$2; shift ;;  # from the first run.sh to the second, below
    --) shift; arguments=("$@"); break ;;
    -*) usage_error "unknown option '$1' (the trainer's come after --)" ;;
    *) [[ -z $cluster ]] || usage_error "one cluster file, not '$1' as well"; cluster=$1 ;;
  esac
  shift
done
[[ -n $cluster ]] || usage_error 'the cluster file is missing'
piped=''  # what was read from a pipe, until it lies in the folder of the run
if is_pipe "$cluster"; then
  ((${#only[@]} == 0)) ||
    usage_error '--only takes the cluster file of the run that goes on, such as runs/latest/cluster.yaml, not a pipe'
  piped=$(mktemp) || die 'there is no place for temporary files'
  trap 'end_pipe_reader; rm -f -- "$piped"' EXIT
  read_pipe "$cluster" "$piped"
fi
[[ -n $piped || -f $cluster ]] || usage_error "there is no file $cluster"
[[ -z $wait_limit || $detach == yes ]] || usage_error '--wait goes with --detach'
for argument in "${arguments[@]}"; do
  case ${argument%%=*} in
    --config | --name) usage_error "$argument is run.sh's to give" ;;
    --run-dir) usage_error '--run-dir goes before --' ;;
  esac
done
for binary in "$trainer" "$cli"; do
  [[ -x $binary ]] || die "there is no $binary: build it (scripts/build.sh), or name one by DPWA_TRAIN and DPWA_CLI" 2
done

# list_servers: the servers of backend kvstore, in the form of `dpwa config nodes`.
list_servers() {
  if [[ -n $piped ]]; then
    "$cli" config nodes /dev/stdin --local --servers <"$piped"
  else
    "$cli" config nodes "$cluster" --local --servers
  fi
}

# Names and cores (comma-separated; empty for -) of the nodes of this host; also validates the file.
if [[ -n $piped ]]; then
  listing=$("$cli" config nodes /dev/stdin --local <"$piped") || exit 2
else
  listing=$("$cli" config nodes "$cluster" --local) || exit 2
fi
declare -A cores_of
names=()
while IFS=$'\x1f' read -r name cores; do
  names+=("$name")
  cores_of[$name]=$cores
done < <(awk -F'\t' -v OFS=$'\x1f' '$NF == "local" {print $1, $4 == "-" ? "" : $4}' <<<"$listing")
local_nodes=${#names[@]}
servers=()
while IFS=$'\x1f' read -r name cores; do
  servers+=("$name")
  cores_of[$name]=$cores
done < <(list_servers | awk -F'\t' -v OFS=$'\x1f' '$NF == "local" {print $1, $4 == "-" ? "" : $4}')
((${#names[@]} + ${#servers[@]} > 0)) || usage_error "no node of $cluster lives on this host"
for name in "${only[@]}"; do
  [[ -n ${cores_of[$name]+there} ]] || usage_error "--only $name: the nodes here are ${names[*]}${servers[*]:+ ${servers[*]}}"
done
is_server() { [[ " ${servers[*]} " == *" $1 "* ]]; }
if ((${#only[@]} > 0)); then
  names=() wanted_servers=()
  for name in "${only[@]}"; do
    if is_server "$name"; then wanted_servers+=("$name"); else names+=("$name"); fi
  done
  servers=("${wanted_servers[@]}")
fi

# make_run_dir: makes the folder of the run, and run_dir its absolute path.
make_run_dir() {
  local why
  why=$(mkdir -p -- "$run_dir" 2>&1) || die "there can be no folder of the run: ${why#mkdir: }" 2
  run_dir=$(realpath -- "$run_dir")
}

# keep_copy FILE: the cluster file in the folder of the run.
keep_copy() {
  local why
  why=$(cp -- "$1" "$run_dir/cluster.yaml" 2>&1) || die "nothing was started: ${why#cp: }" 2
}

if [[ -n $piped ]]; then
  if [[ -z $run_dir ]]; then
    # shellcheck disable=SC2119
    run_dir=$(new_run_folder)
    link_latest "$run_dir"
  fi
  make_run_dir
  cluster=$run_dir/cluster.yaml
fi
state=$(state_folder "$cluster")

refuse_second_start() {
  local name running=()
  for name in "${servers[@]}" "${names[@]}"; do
    if running_pid "$state/$name.process" >/dev/null; then running+=("$name"); fi
  done
  ((${#running[@]} == 0)) || die "already running: ${running[*]} ($stop_script $cluster ends them)" 2
}
refuse_second_start
if [[ -n $piped ]]; then
  keep_copy "$piped"
  rm -f -- "$piped"
  say "the cluster file came through a pipe: $cluster"
fi
if [[ $detach == yes ]]; then
  command -v python3 >/dev/null || die '--detach needs python3' 2
  read_settings
  if [[ $backend != null ]] && ((wait_limit > 0)); then refuse_foreign_nodes; fi
fi

if [[ -z $run_dir && ${#only[@]} -gt 0 && -d $(cat "$state/run_dir" 2>/dev/null) ]]; then
  run_dir=$(<"$state/run_dir")  # that of the others
elif [[ -z $run_dir ]]; then
  # shellcheck disable=SC2119
  run_dir=$(new_run_folder)
  link_latest "$run_dir"
fi
make_run_dir

# detach: starts a second run.sh that waits for the nodes and records how each of them ended. It has a session of its
# own, and its nodes are in that session. Waits until they take part. Returns the exit code.
detach() {
  local log began code=0
  log=$run_dir/run$(printf ,%s "${only[@]}" | sed 's/^,$//; s/^,/-/').log
  exit_codes=$(mktemp -d) || die 'there is no place for temporary files'
  trap 'rm -rf -- "$exit_codes"' EXIT
  began=$exit_codes/.began
  touch "$began"
  rm -f "$run_dir/.started"
  (
    trap - PIPE
    exec setsid bash "$self" "$cluster" "${only[@]/#/--only=}" --run-dir "$run_dir" --exit-codes "$exit_codes" \
      -- "${arguments[@]}" </dev/null >"$log" 2>&1
  ) &
  waiter=$!
  while [[ ! -e $run_dir/.started ]] && kill -0 "$waiter" 2>/dev/null; do sleep 0.05; done
  if [[ ! -e $run_dir/.started && -z $(ls "$exit_codes") ]]; then  # it started nothing
    wait "$waiter" || code=$?
    if [[ -s $log ]]; then show <"$log"; else fail "nothing was started, and $log could not be written"; fi
    return "$code"
  fi
  show <"$log"
  if ((wait_limit == 0)); then
    ok "started, not waited for; $stop_script $cluster ends them, $log tells how each ended"
    return 0
  fi
  trap 'warn "interrupted: the nodes run on; $stop_script $cluster ends them"; exit 130' INT
  trap 'exit 143' TERM HUP
  if ((${#names[@]} == 0)); then
    ok "server(s) started: ${servers[*]}; $stop_script $cluster ends them, $log tells how each ended"
    return 0
  fi
  await_ready
  report_readiness || return
  ok "all ${#names[@]} node(s) take part; $stop_script $cluster ends them, $log tells how each ended"
}

if [[ $detach == yes ]]; then
  code=0
  detach || code=$?
  exit "$code"
fi

mkdir -p "$state"
exec {lock}>"$(dirname -- "$state")/lock"
flock "$lock"
refuse_second_start
printf '%s\n' "$run_dir" >"$state/run_dir"
[[ $run_dir/cluster.yaml -ef $cluster ]] || keep_copy "$cluster"

given_threads=no
for argument in "${arguments[@]}"; do
  [[ ${argument%%=*} != --threads ]] || given_threads=yes
done

declare -A node_of=() server_of=()  # by pid
declare -A log_from=()              # by pid: the first byte in its log that is of this process
failures=0 usage_failures=0 stopped=0 failed_servers=() nodes_are_vain=no
signal='' signals=0
# bash writes a line of its own for every node that a signal ends, unless that signal has a trap.
# shellcheck disable=SC2173  # bash goes by its own table: SIGKILL is no exception
trap : ABRT ALRM BUS FPE ILL IO KILL PROF SEGV SYS TRAP USR1 USR2 VTALRM XCPU XFSZ
trap 'signal=INT signals=$((signals + 1))' INT
trap 'signal=TERM signals=$((signals + 1))' TERM HUP
# Runs when this script ends. stop.sh waits for the end of this process, so its last lines are written by then.
trap '((${#node_of[@]} == 0)) || stop_nodes "$state" "$grace" "${names[@]}"
  ((${#server_of[@]} == 0)) || stop_nodes "$state" "$grace" "${servers[@]}"
  rm -f -- "$state/$$.supervisor"
  forget_nodes "$state" "${servers[@]}" "${names[@]}"' EXIT
record_supervisor "$state" $$

if ((${#servers[@]} > 0)); then
  heading "run: ${#servers[@]} server(s) and ${#names[@]} node(s) of $cluster"
else
  heading "run: ${#names[@]} node(s) of $cluster"
fi
for name in "${servers[@]}"; do start_server "$name" "${cores_of[$name]}"; done
for name in "${names[@]}"; do start_node "$name" "${cores_of[$name]}"; done
touch "$run_dir/.started"
flock -u "$lock"

# Servers serve until the last node has ended; without nodes, until they are told to stop.
stopping=no
while ((${#node_of[@]} > 0 || (${#names[@]} == 0 && ${#server_of[@]} > 0))); do
  if [[ -n $signal && $stopping == no ]]; then
    stopping=yes
    stop_nodes "$state" "$grace" "${names[@]}" || true
    ((${#names[@]} > 0)) || break
  fi
  note_server_ends
  if [[ $nodes_are_vain == yes && $stopping == no ]] && ((${#node_of[@]} > 0)); then
    stopping=yes
    warn "ends the nodes: not all servers have started"
    stop_nodes "$state" "$grace" "${names[@]}" || true
  fi
  for pid in "${!node_of[@]}"; do
    process_start "$pid" >/dev/null || note_end "$pid"
  done
  ((${#node_of[@]} + ${#server_of[@]} == 0)) || sleep 0.1 || true  # a Ctrl-C ends this sleep
done
if ((${#names[@]} > 0)); then
  end_servers
elif ((${#server_of[@]} > 0)); then
  stop_nodes "$state" "$grace" "${servers[@]}" || true
  for pid in "${!server_of[@]}"; do note_server_end "$pid"; done
fi
rm -f "$run_dir/.started"

case $signal in
  INT) exit 130 ;;
  TERM) exit 143 ;;
esac
if ((failures == 0 && stopped > 0)); then
  warn "$stopped of ${#names[@]} node(s) stopped; $run_dir"
  exit 143
fi
if ((failures > 0)); then
  code=1
  ((usage_failures < failures)) || code=2
  failures=$((failures - ${#failed_servers[@]}))
  ((failures > 0)) || die "server(s) failed: ${failed_servers[*]}; $run_dir" "$code"
  ((${#failed_servers[@]} == 0)) || fail "server(s) failed: ${failed_servers[*]}"
  die "$failures of ${#names[@]} node(s) failed; $run_dir" "$code"
fi
if ((${#names[@]} > 0)); then
  ok "all ${#names[@]} node(s) succeeded; $run_dir"
else
  ok "server(s) ended: ${servers[*]}; $run_dir"
fi
