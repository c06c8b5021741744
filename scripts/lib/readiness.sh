# shellcheck shell=bash disable=SC2034,SC2154  # names are shared between the files
# The wait of run.sh --detach: until every node that it started takes part in the training. Names the nodes that
# do not. Uses its settings: names, state, run_dir, cluster, cli, wait_limit (empty for the default), and
#   exit_codes   folder where the other run.sh, process `waiter`, notes how nodes end: a file NODE each
#   began        file made before the nodes were started

declare -A state_of=()   # what a node says of itself: joining, training, …; empty without an answer
declare -A verdict_of=() # of nodes that are decided: ready; done; the exit code of a failure; late

# read_settings: takes backend, and the default of wait_limit, from the cluster file.
read_settings() {
  local effective section=gossip
  effective=$("$cli" config check "$cluster" 2>/dev/null) || true  # it has been read: only the trainers can object
  backend=$(sed -n 's/^backend: "\{0,1\}\([a-z]*\).*/\1/p' <<<"$effective")
  if [[ -z $wait_limit ]]; then
    case $backend in collective | kvstore) section=$backend ;; esac
    wait_limit=$(sed -n "/^$section:/,/^[a-z]/ s/^ *start_wait_ms: \([0-9]*\).*/\1/p" <<<"$effective")
    wait_limit=$((60 + (${wait_limit:-0} + 999) / 1000))
  fi
}

# ask_nodes: fills state_of by asking the nodes themselves.
ask_nodes() {
  local name answer
  state_of=()
  while IFS=$'\t' read -r name answer; do
    state_of[$name]=$answer
  done < <("$cli" status --config "$cluster" --json --timeout-ms 1000 2>/dev/null |
    python3 "$repository/scripts/lib/node_states.py" 2>/dev/null)
}

# takes_part NAME: the node trains, or has trained. A node without a network (backend "null") cannot be asked;
# it takes part once it writes metrics.
takes_part() {
  if [[ $backend == null ]]; then
    [[ $run_dir/$1.metrics.jsonl -nt $began ]]
  else
    [[ ${state_of[$1]:-} == training || ${state_of[$1]:-} == finished ]]
  fi
}

# refuse_foreign_nodes: a node that takes part before it is started is another process of that name. The new
# node could not listen beside it, and the other one would be mistaken for it.
refuse_foreign_nodes() {
  local name foreign=()
  ask_nodes
  for name in "${names[@]}"; do
    if takes_part "$name"; then foreign+=("$name"); fi
  done
  ((${#foreign[@]} == 0)) ||
    die "already running, and not started by run.sh: ${foreign[*]} ($cli status --config $cluster)" 2
}

# decide NAME: enters the node into verdict_of once that is possible.
decide() {
  local code
  if [[ -s $exit_codes/$1 ]]; then
    code=$(<"$exit_codes/$1")
    if ((code == 0)); then verdict_of[$1]='done'; else verdict_of[$1]=$code; fi
  elif running_pid "$state/$1.process" >/dev/null; then
    if takes_part "$1"; then verdict_of[$1]=ready; fi
  elif ! kill -0 "$waiter" 2>/dev/null && [[ ! -s $exit_codes/$1 ]]; then
    verdict_of[$1]=gone  # and so is the one that would tell how it ended
  fi
}

# undecided: the nodes without a verdict, with their states, in one line.
undecided() {
  local name list=() hidden
  for name in "${names[@]}"; do
    [[ -n ${verdict_of[$name]:-} ]] || list+=("$name (${state_of[$name]:-no answer yet})")
  done
  hidden=$((${#list[@]} - 8))
  list=("${list[@]:0:8}")
  ((hidden <= 0)) || list+=("and $hidden more")
  local IFS=,
  printf '%s\n' "${list[*]}" | sed 's/,/, /g'
}

# await_ready: returns once every node is decided, after wait_limit seconds at the latest.
await_ready() {
  local name waiting shown=$SECONDS started=$SECONDS
  while :; do
    [[ $backend == null ]] || ask_nodes
    waiting=no
    for name in "${names[@]}"; do
      [[ -n ${verdict_of[$name]:-} ]] || decide "$name"
      [[ -n ${verdict_of[$name]:-} ]] || waiting=yes
    done
    [[ $waiting == yes ]] || return 0
    ((SECONDS - started < wait_limit)) || break
    if ((SECONDS - shown >= 2)); then
      shown=$SECONDS
      say "$((SECONDS - started)) s: waiting for $(undecided)"
    fi
    sleep 0.3
  done
  for name in "${names[@]}"; do : "${verdict_of[$name]:=late}"; done
}

# last_line FILE: its last line that is not blank, without terminal control characters.
last_line() {
  local line
  line=$(tail -c 8192 -- "$1" 2>/dev/null | tr '\r' '\n' | tr -d '\000-\010\013-\037\177' |
    grep -v '^[[:space:]]*$' | tail -n 1) || true
  fit "${line:-(empty)}" 300
}

# report_readiness: reports why nodes do not take part, and which nodes still run. Returns 0 when all take part;
# 2 when all failed nodes ended with 2 (wrong usage or configuration); else 1.
report_readiness() {
  local name verdict why running=() failed=() code=2
  for name in "${names[@]}"; do
    verdict=${verdict_of[$name]}
    case $verdict in
      ready) running+=("$name"); continue ;;
      'done') continue ;;
      late) running+=("$name"); why="not ready after $wait_limit s (${state_of[$name]:-no answer})" ;;
      gone) why='ended' ;;
      *) why=$(how_it_ended "$verdict") ;;
    esac
    [[ $verdict == 2 ]] || code=1
    failed+=("$name")
    fail "$name: $why; the last line of $run_dir/$name.log:"
    tell '     %s\n' "$(last_line "$run_dir/$name.log")"
  done
  ((${#failed[@]} > 0)) || return 0
  if ((${#running[@]} > 0)); then
    say "still running: ${running[*]}; $stop_script $cluster ends them"
  fi
  return "$code"
}
