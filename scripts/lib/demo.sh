# shellcheck shell=bash disable=SC2034,SC2154  # names are shared between the files
# The arguments and the data of the demo. check_arguments and check_data refuse wrong arguments and impossible choices
# before anything is built; dpwa-train checks the same, but later. choose_data then fetches the files and sets
# data_arguments (of dpwa-train), data_source (for people), default_epochs and eval_every (steps between evaluations).

# is_positive TEXT: a decimal number above 0.
is_positive() {
  [[ $1 =~ ^([0-9]+\.?[0-9]*|\.[0-9]+)([eE]-?[0-9]+)?$ ]] && awk -v x="$1" 'BEGIN {exit !(x > 0 && x < 1e300)}'
}

check_arguments() {
  [[ $nodes =~ ^([2-9]|[1-5][0-9]|6[0-4])$ ]] || usage_error "--nodes takes 2 to 64, not '$nodes'"
  [[ -z $epochs ]] || is_positive "$epochs" || usage_error "--epochs takes a number above 0, not '$epochs'"
  [[ $seed =~ ^[0-9]{1,19}$ ]] || usage_error "--seed takes a whole number of at most 19 digits, not '$seed'"
  case $model in
    mlp | cnn | resnet18) ;;
    *) usage_error "--model takes mlp, cnn or resnet18, not '$model'" ;;
  esac
  case $backend in
    gossip | collective | kvstore) ;;
    *) usage_error "--backend takes gossip, collective or kvstore, not '$backend'" ;;
  esac
  case $split in
    iid | shared) ;;
    *)
      { [[ $split == dirichlet:* ]] && is_positive "${split#dirichlet:}"; } ||
        usage_error "--split takes iid, shared or dirichlet:ALPHA with ALPHA above 0, not '$split'"
      ;;
  esac
}

# has_files FOLDER SUB-FOLDER STEM...: every file, plain or .gz, is in the folder or in its sub-folder.
has_files() {
  local folder=$1 sub_folder=$2 stem file found
  shift 2
  for stem in "$@"; do
    found=no
    for file in "$folder"/{,"$sub_folder/"}"$stem"{,.gz}; do
      [[ ! -f $file ]] || found=yes
    done
    [[ $found == yes ]] || return 1
  done
}

has_mnist() { has_files "$1" mnist {train,t10k}-{images-idx3,labels-idx1}-ubyte; }

has_cifar10() { has_files "$1" cifar-10-batches-bin data_batch_{1..5}.bin test_batch.bin; }

# check_data WANTED: WANTED is mnist, cifar10, synthetic, or empty for the best available set.
check_data() {
  case $1 in
    '' | mnist)
      [[ -z ${DPWA_DATA_DIR:-} ]] || has_mnist "$DPWA_DATA_DIR" ||
        usage_error "DPWA_DATA_DIR: the four MNIST files (train-images-idx3-ubyte and so on, plain or .gz) are not in $DPWA_DATA_DIR"
      ;;
    cifar10)
      [[ -z ${DPWA_DATA_DIR:-} ]] || has_cifar10 "$DPWA_DATA_DIR" ||
        usage_error "DPWA_DATA_DIR: the six CIFAR-10 files (data_batch_1.bin and so on, plain or .gz) are not in $DPWA_DATA_DIR"
      ;;
    synthetic) ;;
    *) usage_error "--data takes mnist, cifar10 or synthetic, not '$1'" ;;
  esac
}

use_synthetic() {
  data_arguments=(--data synthetic)
  data_source='synthetic patterns'
  default_epochs=3
  eval_every=50
}

# use_images NAME FOLDER SOURCE EPOCHS EVAL_EVERY
use_images() {
  data_arguments=(--data "$1" --data-dir "$(realpath -- "$2")")
  data_source=$3
  default_epochs=$4
  eval_every=$5
}

choose_cifar10() {
  local folder=${DPWA_DATA_DIR:-$data_folder/cifar10}
  has_cifar10 "$folder" || "$repository/scripts/prepare_data.sh" cifar10 ||
    die 'no CIFAR-10: scripts/prepare_data.sh cifar10 --from DIR takes it from a folder, and DPWA_DATA_DIR names one with its files'
  use_images cifar10 "$folder" CIFAR-10 3 100
}

# choose_mnist WANTED: the whole set if it is available locally, else 5,000 digits of it.
choose_mnist() {
  local whole=${DPWA_DATA_DIR:-$data_folder/mnist} digits=$data_folder/mnist5k
  if has_mnist "$whole"; then
    say "MNIST of $whole"
    use_images mnist "$whole" MNIST 3 100
  elif (exec_python "$venv/bin/python" "$repository/scripts/prepare_mnist.py" "$digits"); then
    use_images mnist "$digits" '5,000 digits of MNIST' 20 50
  elif [[ $1 == mnist ]]; then
    die 'no MNIST: run scripts/prepare_data.sh mnist, or set DPWA_DATA_DIR to a folder with its files'
  else
    use_synthetic
    warn 'the digits cannot be fetched (offline?): a small synthetic set is used instead'
  fi
}

# choose_data WANTED: after check_data.
choose_data() {
  case $1 in
    synthetic) use_synthetic ;;
    cifar10) choose_cifar10 ;;
    *) choose_mnist "$1" ;;
  esac
  ok "data: $data_source"
}

# name_models FOLDER: says which file of runs/latest has which model; the last line names the result of the run.
name_models() {
  local file what result=''
  for file in "$1"/*.safetensors; do
    [[ $file == *.own.safetensors || ! -f $file || -n $result ]] || result=$(basename -- "$file")
  done
  if [[ -z $result ]]; then
    warn 'no file has the model of all nodes: the logs of the nodes say why'
    return 0
  fi
  case $backend in
    collective) what='model that the nodes share' ;;
    kvstore) what='model of the servers' ;;
    *)
      what='averaged model'
      say 'the model of each node before the average: runs/latest/NODE.own.safetensors'
      ;;
  esac
  ok "the $what: runs/latest/$result (docs/TRAINING.md shows how to load it)"
}
