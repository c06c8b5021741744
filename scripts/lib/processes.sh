# shellcheck shell=bash disable=SC2034,SC2154  # names are shared between the files
# Records of the processes that run.sh started, used to find and end them. Each cluster file has a folder with
# one file per node or server, and one file, PID.supervisor, for each run.sh that waits for nodes. A process is
# identified by pid, start time and boot, so a reused pid is never mistaken for one of them. Beside them, the file
# run_dir names the folder of the run, and the file `ender` the one process that ends the servers.

boot_id=$(</proc/sys/kernel/random/boot_id)

# state_folder CLUSTER: where the processes of this cluster file are recorded.
state_folder() {
  local path
  path=$(realpath -m -- "$1")
  printf '%s/%s-%s\n' "$state_root" "$(basename -- "$path")" \
    "$(printf '%s' "$path" | sha256sum | cut -c1-12)"
}

# process_start PID: its start time in clock ticks since boot (field 22 of /proc/PID/stat). Fails when
# there is no such process, or it has ended and only waits to be reaped.
process_start() {
  local stat fields
  read -r stat 2>/dev/null <"/proc/$1/stat" || return 1
  read -ra fields <<<"${stat##*) }"  # the name before it may hold spaces; field 3 is the first here
  [[ ${fields[0]} != [ZX] ]] || return 1
  printf '%s\n' "${fields[19]}"
}

# record_process FOLDER NODE PID ROLE: ROLE is node or server.
record_process() {
  local start
  start=$(process_start "$3") || return 0
  printf '%s %s %s %s\n' "$3" "$start" "$boot_id" "$4" >"$1/$2.process"
}

# record_supervisor FOLDER PID
record_supervisor() {
  local start
  start=$(process_start "$2") || return 0
  printf '%s %s %s\n' "$2" "$start" "$boot_id" >"$1/$2.supervisor"
}

# supervisors FOLDER: "PID START" of each run.sh recorded there that still runs, one a line.
supervisors() {
  local file pid
  for file in "$1"/*.supervisor; do
    if pid=$(running_pid "$file"); then printf '%s %s\n' "$pid" "$(process_start "$pid")"; fi
  done
}

# await_supervisors SECONDS "PID START"...: waits until each of them has ended, SECONDS at most. After a second
# it prints the ones that it waits for. True when all have ended.
await_supervisors() {
  local started=$SECONDS limit=$1 told=no one
  shift
  for one in "$@"; do
    while [[ $(process_start "${one% *}") == "${one#* }" ]]; do
      ((SECONDS - started < limit)) || return 1
      if ((SECONDS - started > 1)) && [[ $told == no ]]; then
        told=yes
        say "waiting for run.sh (pid ${one% *}), which writes down how they ended"
      fi
      sleep 0.05
    done
  done
}

# running_pid FILE: the pid recorded in FILE if that process still runs.
running_pid() {
  local pid start boot
  read -r pid start boot _ 2>/dev/null <"$1" || return 1
  [[ $boot == "$boot_id" && $(process_start "$pid") == "$start" ]] || return 1
  printf '%s\n' "$pid"
}

# recorded_nodes FOLDER: names of the nodes recorded there, running or not, one a line.
recorded_nodes() {
  local file
  for file in "$1"/*.process; do
    [[ ! -e $file ]] || basename -- "$file" .process
  done
}

# recorded_as FOLDER ROLE: names of the nodes (or servers) recorded there, running or not, one a line.
recorded_as() {
  local name role
  for name in $(recorded_nodes "$1"); do
    read -r _ _ _ role 2>/dev/null <"$1/$name.process" || continue
    [[ ${role:-node} != "$2" ]] || printf '%s\n' "$name"
  done
}

# become_ender FOLDER: records that this process ends the servers.
become_ender() {
  { printf '%s %s %s\n' $$ "$(process_start $$)" "$boot_id" >"$1/ender"; } 2>/dev/null || true  # all have ended
}

# other_ender FOLDER: the pid of another process that ends the servers at this time, if there is one. Only one may: a
# second SIGTERM ends a server at once, without its last snapshot.
other_ender() {
  local pid
  pid=$(running_pid "$1/ender") || return 1
  [[ $pid != "$$" ]] || return 1
  printf '%s\n' "$pid"
}

# running_nodes FOLDER NODE...: the given nodes that still run, one per line.
running_nodes() {
  local folder=$1 node
  shift
  for node in "$@"; do
    if running_pid "$folder/$node.process" >/dev/null; then printf '%s\n' "$node"; fi
  done
}

# forget_nodes FOLDER NODE...: drops the records of nodes that have ended, and of a run.sh that was killed.
forget_nodes() {
  local folder=$1 node file
  shift
  for node in "$@"; do
    running_pid "$folder/$node.process" >/dev/null || rm -f "$folder/$node.process"
  done
  for file in "$folder"/*.supervisor; do
    running_pid "$file" >/dev/null || rm -f "$file"
  done
  other_ender "$folder" >/dev/null || rm -f "$folder/ender"
  if [[ -z $(recorded_nodes "$folder") ]]; then
    rm -f "$folder/run_dir"
    rmdir --ignore-fail-on-non-empty "$folder" 2>/dev/null || true
  fi
}

# signal_nodes FOLDER SIGNAL NODE...
signal_nodes() {
  local folder=$1 signal=$2 node pid
  shift 2
  for node in "$@"; do
    if pid=$(running_pid "$folder/$node.process"); then kill -s "$signal" "$pid" 2>/dev/null || true; fi
  done
}

# await_end FOLDER SECONDS NODE...: waits at most SECONDS; true when none of the nodes runs.
await_end() {
  local folder=$1 deadline=$((SECONDS + $2))
  shift 2
  while [[ -n $(running_nodes "$folder" "$@") ]]; do
    ((SECONDS < deadline)) || return 1
    sleep 0.1
  done
}

# stop_nodes FOLDER GRACE NODE...: SIGTERM; SIGKILL for nodes that still run after GRACE seconds. Reports its
# actions, and fails when a node still runs.
stop_nodes() {
  local folder=$1 grace=$2 nodes left
  shift 2
  mapfile -t nodes < <(running_nodes "$folder" "$@")
  if ((${#nodes[@]} == 0)); then
    ok 'nothing of it runs'
    return 0
  fi
  say "SIGTERM: ${nodes[*]}"
  signal_nodes "$folder" TERM "${nodes[@]}"
  signal_nodes "$folder" CONT "${nodes[@]}"  # a stopped process would not see it
  if await_end "$folder" "$grace" "${nodes[@]}"; then
    ok "stopped: ${nodes[*]}"
    return 0
  fi
  mapfile -t left < <(running_nodes "$folder" "${nodes[@]}")
  warn "still there after $grace s, SIGKILL: ${left[*]}"
  signal_nodes "$folder" KILL "${left[@]}"
  if await_end "$folder" 5 "${left[@]}"; then
    ok "stopped: ${nodes[*]}"
    return 0
  fi
  fail "cannot be ended: $(running_nodes "$folder" "${left[@]}" | tr '\n' ' ')"
  return 1
}
