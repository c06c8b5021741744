#!/usr/bin/env bash
# Checks the C++ sources against .clang-format, with the clang-format pinned in requirements-dev.txt.
#
# usage: scripts/check_format.sh [--fix]
#
#   --fix   rewrites the files instead of reporting
set -euo pipefail
# shellcheck source=lib/common.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib/common.sh"

mode=(--dry-run -Werror)
case ${1:-} in
  -h | --help) show_help; exit 0 ;;
  --fix) mode=(-i) ;;
  '') ;;
  *) usage_error "unknown argument '$1'" ;;
esac

[[ -x $venv/bin/clang-format ]] || die 'no clang-format in .venv: run scripts/setup.sh first'
cd "$repository"
mapfile -t sources < <(git ls-files --cached --others --exclude-standard '*.h' '*.cpp')
((${#sources[@]} > 0)) || die 'git lists no C++ sources here'
"$venv/bin/clang-format" "${mode[@]}" "${sources[@]}" ||
  die "format: run scripts/check_format.sh --fix"
ok "format: ${#sources[@]} files"
