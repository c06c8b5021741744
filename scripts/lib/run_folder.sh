# shellcheck shell=bash disable=SC2154  # names are shared between the files
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
    ((count < 100)) || return 1
    folder=$base-$count
  done
  printf '%s\n' "$folder"
}

# link_latest FOLDER: points runs/latest at it.
link_latest() { ln -sfn "$(basename -- "$1")" "$runs_folder/latest"; }
