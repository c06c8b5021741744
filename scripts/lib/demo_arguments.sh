# shellcheck shell=bash disable=SC2154  # names are shared between the files
# The arguments that the demo accepts. dpwa-train checks the same, but only after everything has been built.

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
    gossip | collective) ;;
    *) usage_error "--backend takes gossip or collective, not '$backend'" ;;
  esac
  case $split in
    iid | shared) ;;
    *)
      { [[ $split == dirichlet:* ]] && is_positive "${split#dirichlet:}"; } ||
        usage_error "--split takes iid, shared or dirichlet:ALPHA with ALPHA above 0, not '$split'"
      ;;
  esac
}
