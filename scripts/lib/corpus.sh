# shellcheck shell=bash
# The corpora of the fuzzers. The inputs of a target lie in one archive, test/fuzz/corpus/TARGET.tar; those that
# once broke it lie beside it, in TARGET/, under names that say what they are.

# unpack_corpus ARCHIVE FOLDER: into an empty folder.
unpack_corpus() {
  rm -rf -- "$2"
  mkdir -p "$2"
  tar -xf "$1" -C "$2"
}

# pack_corpus FOLDER ARCHIVE: the same files give the same bytes, whoever packs them and when.
pack_corpus() {
  (cd -- "$1" && LC_ALL=C find . -type f -printf '%P\n' | LC_ALL=C sort) |
    tar -cf "$2" -C "$1" --format=ustar --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=0644 \
      --verbatim-files-from -T -
}
