# shellcheck shell=bash disable=SC2154  # names are shared between the files
# Starts one node or server of run.sh and reports how it ended. Uses its settings, and fills node_of and server_of,
# the names of the running ones by pid, the counters failures, usage_failures (those with code 2) and stopped, and
# failed_servers, the names of those that have ended by themselves.

# how_it_ended CODE: describes the end of a process with exit code CODE.
how_it_ended() {
  if (($1 > 128)); then
    echo "ended by signal $(($1 - 128)) ($(kill -l $(($1 - 128)) 2>/dev/null || echo unknown))"
  else
    echo "exit code $1"
  fi
}

# threads_for CORES: as many as cores; a node without cores gets its share of the machine.
threads_for() {
  local list=() share=$(($(nproc) / local_nodes))
  IFS=, read -ra list <<<"$1"
  if ((${#list[@]} > 0)); then echo "${#list[@]}"; else echo $((share > 0 ? share : 1)); fi
}

# set_pin NAME: sets `pin` to the command that pins to `cores`; empties both where this machine lacks them.
set_pin() {
  pin=()
  [[ -n $cores ]] || return 0
  if taskset -c "$cores" true 2>/dev/null; then
    pin=(taskset -c "$cores")
  else
    warn "$1: this machine has no cores $cores: not pinned"
    cores=''
  fi
}

# start_process NAME COMMAND...: starts COMMAND, and $! is its pid. Its output goes to the log of NAME. It is a process
# group of its own: a Ctrl-C in the terminal reaches it through run.sh alone, once. It is not a session of its own: the
# autogroup of Linux divides each core among sessions, and a network thread of a node would wait for whole slices of the
# other nodes (four nodes on two cores: .03 blends a step, and .45 in one session).
start_process() {
  local log=$run_dir/$1.log
  shift
  set -m  # a job is a group then
  (
    trap - PIPE
    trap '' HUP  # until the program is ready to read its file again
    exec "$@" {lock}>&- </dev/null >>"$log" 2>&1
  ) &
  set +m
}

# start_server NAME CORES: starts and records one server of backend kvstore.
start_server() {
  local name=$1 cores=$2 pin log_before
  set_pin "$name"
  log_before=$(stat -c %s "$run_dir/$name.log" 2>/dev/null || echo 0)
  start_process "$name" "${pin[@]}" "$cli" kvserver --config "$cluster" --name "$name"
  server_of[$!]=$name
  log_from[$!]=$((log_before + 1))
  record_process "$state" "$name" $! server
  say "$name: server, pid $!, ${cores:+cores $cores, }log $run_dir/$name.log"
}

# note_server_end PID: reports how the server with process id PID ended. It should not, before it is told to. One that
# gives up by itself is a failure of the run, and nodes_are_vain is set to yes when it has never served: the nodes would
# wait for it, or find a server of another run at its address. One that a signal ends may have replicas.
note_server_end() {
  local name=${server_of[$1]} code=0 from=${log_from[$1]}
  wait "$1" || code=$?
  unset "server_of[$1]"
  if ((code == 130 || code == 143)); then
    ok "$name: server stopped ($SECONDS s)"
    return 0
  fi
  warn "$name: server: $(how_it_ended "$code") after $SECONDS s; the end of $run_dir/$name.log:"
  tail -c "+$from" "$run_dir/$name.log" | tail -n 5 | sed 's/^/     /' >&2
  ((code < 128 || ${#names[@]} == 0)) || return 0
  failures=$((failures + 1))
  ((code != 2)) || usage_failures=$((usage_failures + 1))
  failed_servers+=("$name")
  if ((code == 2)) || ! tail -c "+$from" "$run_dir/$name.log" | grep -q 'listens on port'; then nodes_are_vain=yes; fi
}

# start_node NAME CORES: starts and records one node; CORES may be empty.
start_node() {
  local name=$1 cores=$2 threads pin log_before options=(--run-dir "$run_dir")
  threads=$(threads_for "$cores")
  set_pin "$name"
  [[ $given_threads == yes ]] || options+=(--threads "$threads")
  log_before=$(stat -c %s "$run_dir/$name.log" 2>/dev/null || echo 0)
  start_process "$name" "${pin[@]}" env OMP_NUM_THREADS="$threads" "$trainer" --config "$cluster" --name "$name" \
    "${options[@]}" "${arguments[@]}"
  node_of[$!]=$name
  log_from[$!]=$((log_before + 1))
  record_process "$state" "$name" $! node
  say "$name: pid $!, ${cores:+cores $cores, }$threads thread(s), log $run_dir/$name.log"
}

# note_end PID: reports how the node with process id PID ended.
note_end() {
  local name=${node_of[$1]} code=0
  wait "$1" || code=$?
  unset "node_of[$1]"
  [[ ! -d $exit_codes ]] || printf '%s\n' "$code" >"$exit_codes/$name"
  if ((code == 0)); then
    ok "$name: done ($SECONDS s)"
  elif ((code == 130 || code == 143)); then
    stopped=$((stopped + 1))
    say "$name: ended by SIG$([[ $code == 130 ]] && echo INT || echo TERM) ($SECONDS s)"
  else
    failures=$((failures + 1))
    ((code != 2)) || usage_failures=$((usage_failures + 1))
    fail "$name: $(how_it_ended "$code") after $SECONDS s; the end of $run_dir/$name.log:"
    tail -c "+${log_from[$1]}" "$run_dir/$name.log" | tail -n 5 | sed 's/^/     /' | show
  fi
}

# note_server_ends: reports the servers of this run.sh that have ended.
note_server_ends() {
  local pid
  for pid in "${!server_of[@]}"; do
    process_start "$pid" >/dev/null || note_server_end "$pid"
  done
}

# end_servers: the last run.sh with nodes of the cluster file ends its servers, also those of other run.sh. While nodes
# of another run.sh still use them, one with servers of its own waits (a signal ends the wait, and these servers), and
# one without servers leaves that to the others. One process at a time ends them.
end_servers() {
  local signals_before=$signals told=no all running others pid
  while :; do
    note_server_ends
    mapfile -t all < <(recorded_as "$state" server)
    mapfile -t running < <(running_nodes "$state" "${all[@]}")
    ((${#running[@]} > 0)) || break
    flock "$lock"  # no other run.sh is about to start nodes, or to end servers
    mapfile -t all < <(recorded_as "$state" node)
    mapfile -t others < <(running_nodes "$state" "${all[@]}")
    if ((${#others[@]} > 0 && signals > signals_before)); then
      flock -u "$lock"
      warn "ends its servers under the nodes of another run.sh: ${others[*]}"
      stop_nodes "$state" "$grace" "${servers[@]}" || true
      break
    elif ((${#others[@]} == 0)) && ! other_ender "$state" >/dev/null; then
      become_ender "$state"
      flock -u "$lock"
      stop_nodes "$state" "$grace" "${running[@]}" || true
      break
    fi
    flock -u "$lock"
    if ((${#server_of[@]} == 0)); then
      ((${#others[@]} == 0)) || say "the servers continue for the nodes of another run.sh: ${others[*]}"
      break
    fi
    if ((${#others[@]} > 0)) && [[ $told == no ]]; then
      told=yes
      say "waits with its servers until the nodes of another run.sh have ended: ${others[*]}"
    fi
    if ((${#others[@]} > 0)); then sleep 0.5; else sleep 0.1; fi || true  # a Ctrl-C ends this sleep
  done
  for pid in "${!server_of[@]}"; do note_server_end "$pid"; done
}
