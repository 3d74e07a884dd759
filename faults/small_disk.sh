#!/usr/bin/env bash
# Summary: Put a folder on a small disk of its own, fill it, make it read-only; as root, on Linux.
# Usage: faults/small_disk.sh mount FOLDER MIB | fill FOLDER | free FOLDER | read-only FOLDER | writable FOLDER | unmount FOLDER
#
# mount     move the folder's files to a new disk in memory, mounted in its place
# fill      a file that takes all that is left; free removes it
# unmount   move the files back
set -euo pipefail

action="${1:?which action? see the head of this file}"
folder="${2:?which folder?}"
behind="${folder}.on_disk"

case "${action}" in
  mount)
    test ! -e "${behind}"
    mv "${folder}" "${behind}"
    mkdir -p "${folder}"
    mount -t tmpfs -o "size=${3:?how many MiB?}m" faultline "${folder}"
    cp -a "${behind}/." "${folder}/"
    ;;
  fill)
    # It ends with "no space left", as it must.
    dd if=/dev/zero of="${folder}/filler" bs=64k status=none 2>/dev/null || true
    test -s "${folder}/filler"
    ;;
  free) rm -f "${folder}/filler" ;;
  read-only)
    # A file that is being written makes it busy for a moment.
    for _ in $(seq 100); do
      mount -o remount,ro "${folder}" 2>/dev/null && exit 0
      sleep 0.05
    done
    echo "small_disk.sh: ${folder} stays busy" >&2
    exit 1
    ;;
  writable) mount -o remount,rw "${folder}" ;;
  unmount)
    mount -o remount,rw "${folder}"
    rm -rf "${folder}.moved"
    cp -a "${folder}" "${folder}.moved"
    umount --lazy "${folder}"
    rm -rf "${folder}" "${behind}"
    mv "${folder}.moved" "${folder}"
    ;;
  *)
    echo "small_disk.sh: unknown action '${action}'" >&2
    exit 2
    ;;
esac
