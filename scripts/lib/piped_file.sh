# shellcheck shell=bash disable=SC2154  # names are shared between the files
# A cluster file that comes through a pipe. Every node reads the file, but a pipe can be read only once. So
# run.sh reads it, with the time limits of the programs (dpwa/config/document.h), and gives the nodes a copy.

pipe_reader=''  # the process that reads it, for as long as it does

# is_pipe FILE: also true for the file of <(...) in a shell, and for any standard input, because the nodes have
# a different one.
is_pipe() {
  case $1 in
    /dev/stdin | /dev/fd/* | /proc/self/fd/*) return 0 ;;
    *) [[ -p $1 ]] ;;
  esac
}

# uptime_cs: sets now, hundredths of a second of a clock that does not jump.
uptime_cs() {
  local rest
  read -r now rest </proc/uptime
  now=$((10#${now/./}))
}

# pipe_complaint OPENED TOTAL IDLE: the reason to stop reading, or nothing. OPENED: yes or no, whether the pipe
# has a writer. TOTAL and IDLE: time since the beginning and since the last bytes, in hundredths of a second.
pipe_complaint() {
  if [[ $1 == no ]]; then
    (($2 < 200)) || echo 'is a pipe that no process has opened for writing for 2 s'
  elif (($2 >= 6000)); then
    echo 'was not completely written within 60 s'
  elif (($3 >= 1000)); then
    echo 'was not completely written: nothing has arrived for 10 s'
  fi
}

# read_pipe PIPE FILE: reads slightly more than a cluster file may have; dpwa refuses a longer one.
read_pipe() {
  local code=0 opened=no size=0 now begun last grown why='' accepted='a cluster file, or a pipe that is being written'
  local most_kib=$(((4 << 10) + 1))
  # cat writes what it has read at once. That the file may not grow further ends it.
  (
    trap '' XFSZ
    ulimit -S -f "$most_kib" || true
    exec <"$1"
    exec cat
  ) <&0 >"$2" 2>/dev/null &
  pipe_reader=$!
  uptime_cs
  begun=$now last=$now
  while [[ -z $why ]] && kill -0 "$pipe_reader" 2>/dev/null; do
    sleep 0.05
    uptime_cs
    if [[ $opened == no && /proc/$pipe_reader/fd/0 -ef $1 ]]; then opened=yes last=$now; fi
    grown=$(stat -c %s -- "$2")
    if ((grown > size)); then size=$grown last=$now; fi
    why=$(pipe_complaint "$opened" $((now - begun)) $((now - last)))
  done
  [[ -z $why ]] || kill "$pipe_reader" 2>/dev/null || true
  wait "$pipe_reader" 2>/dev/null || code=$?
  pipe_reader=''
  [[ -z $why ]] || usage_error "$1 $why; accepted: $accepted"
  ((code == 0 || $(stat -c %s -- "$2") >= most_kib << 10)) || usage_error "$1 cannot be read"
  [[ -s $2 ]] || usage_error "$1 is empty; accepted: $accepted"
}

# end_pipe_reader: for a script that is ended while it reads.
end_pipe_reader() { [[ -z $pipe_reader ]] || kill "$pipe_reader" 2>/dev/null || true; }
