#!/bin/sh
# Makes the root of an image of one program: the program in /usr/bin, every library that it loads where it is here, env,
# and what the resolution of names needs.
#
# usage: collect.sh FOLDER PROGRAM
set -eu

folder=$1 program=$2
mkdir -p "$folder/usr/bin" "$folder/etc" "$folder/tmp"
chmod 1777 "$folder/tmp"
cp "$program" /usr/bin/env "$folder/usr/bin/"
strip "$folder/usr/bin/$(basename "$program")"
# "libz.so.1 => /lib/…/libz.so.1 (0x…)", and "/lib64/ld-linux-x86-64.so.2 (0x…)" for the loader.
ldd "$program" | awk '$2 == "=>" && $3 ~ /^\// {print $3} $1 ~ /^\// {print $1}' | while read -r library; do
  mkdir -p "$folder$(dirname "$library")"
  cp -L "$library" "$folder$library"
done
printf 'hosts: files dns\n' >"$folder/etc/nsswitch.conf"
printf 'dpwa:x:10001:10001::/:\n' >"$folder/etc/passwd"
printf 'dpwa:x:10001:\n' >"$folder/etc/group"
