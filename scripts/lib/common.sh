# shellcheck shell=bash disable=SC2034,SC2154  # names are shared between the files
# Shared by every script: the folder of the repository, messages to the user, long work with progress.
# Messages go to stderr, in colour only on a terminal and without NO_COLOR.

repository=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
venv=$repository/.venv
log_folder=$repository/build/logs
binaries=$repository/build/release/bin
runs_folder=$repository/runs
data_folder=$repository/data
state_root=$runs_folder/.state  # of what runs: see processes.py
bytecode=()                     # options of python3
if [[ -e $repository/scripts/lib/installed.sh ]]; then
  # shellcheck source=/dev/null
  source "$repository/scripts/lib/installed.sh"
fi

if [[ -t 2 && -z ${NO_COLOR:-} && ${TERM:-dumb} != dumb ]]; then
  bold=$'\e[1m' green=$'\e[32m' yellow=$'\e[33m' red=$'\e[31m' dim=$'\e[2m' plain=$'\e[0m'
else
  bold='' green='' yellow='' red='' dim='' plain=''
fi

# Without a trap, bash forgets a SIGINT that comes between the end of a program and the wait for it.
trap 'trap - INT; kill -INT $$' INT

# A file that is opened later must not take the place of a closed standard descriptor.
for descriptor in 0 1 2; do
  [[ -L /proc/$$/fd/$descriptor ]] || eval "exec $descriptor<>/dev/null"
done

# A message that cannot be written (a full disk, a reader that has gone) ends no work.
tell() {
  # shellcheck disable=SC2059  # the first argument is the format
  printf "$@" >&2 2>/dev/null || true
}
show() { cat >&2 2>/dev/null || true; }
heading() { tell '%s== %s%s\n' "$bold" "$*" "$plain"; }
say() { tell '   %s\n' "$*"; }
ok() { tell '%sok%s %s\n' "$green" "$plain" "$*"; }
warn() { tell '%s!!%s %s\n' "$yellow" "$plain" "$*"; }
fail() { tell '%sfailed:%s %s\n' "$red" "$plain" "$*"; }

# die MESSAGE [CODE]: prints one line and exits. CODE is 1 by default.
die() {
  fail "$1"
  exit "${2:-1}"
}

# usage_error MESSAGE: wrong usage ends with 2; nothing was started.
usage_error() { die "$1; see $(basename -- "$0") --help" 2; }

# needs_value OPTION COUNT: reports wrong usage when OPTION is the last word; COUNT is $# of the caller.
needs_value() { (($2 >= 2)) || usage_error "$1 needs a value"; }

# only_once OPTION: reports wrong usage when OPTION is given a second time: the last one would win silently.
given_options=' '
only_once() {
  [[ $given_options != *" $1 "* ]] || usage_error "$1 is given twice; accepted: once"
  given_options+="$1 "
}

# show_help: prints the comment block at the head of the running script.
show_help() {
  sed -n '2,/^[^#]/{/^#/!q;s/^# \{0,1\}//;p}' "$0" 2>/dev/null || die 'cannot write the help'
}

# configured_here FOLDER: true when FOLDER was configured by CMake for this checkout. CMake's files contain
# absolute paths: in a checkout that was copied or moved they build the original one. "cmake --build" only
# prints an error in that case, and its exit code is 0.
configured_here() {
  local cache=$1/CMakeCache.txt source build
  source=$(sed -n 's/^CMAKE_HOME_DIRECTORY:[A-Z]*=//p' "$cache" 2>/dev/null) || return 1
  build=$(sed -n 's/^CMAKE_CACHEFILE_DIR:[A-Z]*=//p' "$cache")
  [[ $source -ef $repository && $build -ef $1 ]]
}

# version_at_least HAVE WANT
version_at_least() { [[ $(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n1) == "$2" ]]; }

# end_jobs_at_exit TEXT: when this script ends, it ends the processes that it started, as run.sh stops its
# nodes on a signal. One that is told to stop (Ctrl-C, SIGTERM) says so, and TEXT.
end_jobs_at_exit() {
  text_of_interruption=$1
  trap end_jobs EXIT
  trap 'warn "interrupted; $text_of_interruption"; exit 130' INT
  trap 'warn "ended; $text_of_interruption"; exit 143' TERM HUP
}
end_jobs() {
  local code=$? children
  trap '' INT TERM HUP
  mapfile -t children < <(jobs -p)
  # Also the groups of those that lead one.
  ((${#children[@]} == 0)) || kill -- "${children[@]}" "${children[@]/#/-}" 2>/dev/null || true
  wait
  exit "$code"
}

# fit TEXT WIDTH: TEXT in at most WIDTH characters, cut between two words.
fit() {
  local text=$1
  if ((${#text} > $2)); then
    text=${text:0:$2-2}
    text="${text% *} …"
  fi
  printf '%s\n' "$text"
}

# latest_of FILE: its last complete line that is not blank.
latest_of() {
  local line latest=''
  while IFS= read -r line; do [[ $line =~ ^[[:space:]]*$ ]] || latest=$line; done < <(tail -c 4096 -- "$1" | tr '\r' '\n')
  printf '%s\n' "$latest"
}

# run_logged TITLE NAME COMMAND...: runs COMMAND with its output in build/logs/NAME.log; every few
# seconds shows how long it has taken and its latest line, or that of the file progress_file, if it is set
# and there is one. A failure shows the end of the log.
run_logged() {
  local title=$1 log=$log_folder/${2// /-}.log pid started=$SECONDS shown=$SECONDS code=0 latest
  shift 2
  mkdir -p "$log_folder"
  say "$title …"
  "$@" >"$log" 2>&1 </dev/null &
  pid=$!
  while kill -0 "$pid" 2>/dev/null; do
    sleep 0.2
    if ((SECONDS - shown >= 4)); then
      shown=$SECONDS
      latest=${progress_file:-}
      [[ -s $latest ]] || latest=$log
      say "$dim$(fit "$((SECONDS - started)) s  $(latest_of "$latest")" 76)$plain"
    fi
  done
  wait "$pid" || code=$?
  if ((code != 0)); then
    fail "$title (exit code $code); the end of $log:"
    tail -n 20 "$log" | sed 's/^/     /' | show
    return "$code"
  fi
  ok "$title ($((SECONDS - started)) s)"
}

# Folders of runs: runs/TIME, runs/bench/TIME, and the link runs/latest; in the checkout or, for an
# installed dpwa, in the working folder.

# new_run_folder [KIND]: makes a folder named for the time, of a kind in a folder of its own, and prints it.
new_run_folder() {
  local base folder count=1
  base=$runs_folder${1:+/$1}
  mkdir -p "$base"
  base+=/$(date +%Y%m%d-%H%M%S)
  folder=$base
  until mkdir "$folder" 2>/dev/null; do
    count=$((count + 1))
    if ((count == 100)); then
      mkdir "$folder"  # which says why
      return 1
    fi
    folder=$base-$count
  done
  printf '%s\n' "$folder"
}

# link_latest FOLDER: points runs/latest at it.
link_latest() { ln -sfn "$(basename -- "$1")" "$runs_folder/latest"; }

# exec_python PYTHON ARGUMENT...: goes on as a script that begins with lib/interrupts.py. SIGINT waits until then: while
# Python itself starts, it would be a traceback. An env that is too old to block it is not used.
exec_python() {
  if env --block-signal=INT true 2>/dev/null; then exec env --block-signal=INT "$@"; fi
  exec "$@"
}

# supervise run|stop ARGUMENT...: goes on as that command of supervise.py.
supervise() {
  local command=$1 word
  shift
  for word in "$@"; do
    case $word in
      -h | --help) show_help; exit 0 ;;
      --) break ;;
    esac
  done
  local python=$repository/.venv/bin/python3  # python3 of the PATH may be a slow wrapper
  [[ -x $python ]] || python=$(command -v python3) || die "$(basename -- "$0") needs python3" 2
  exec_python "$python" -ES "${bytecode[@]}" "$repository/scripts/supervise.py" "$command" "$0" "$binaries" "$runs_folder" \
    "$state_root" "$@"
}
