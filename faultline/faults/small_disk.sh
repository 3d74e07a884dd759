#!/usr/bin/env bash
# Summary: Put a folder on a small disk of its own, fill it, make it read-only; as root, on Linux.
# Usage: faultline/faults/small_disk.sh mount FOLDER MIB | fill FOLDER | free FOLDER | read-only FOLDER | writable FOLDER | unmount FOLDER
#
# mount     copy the folder's files to a new disk in memory, mounted in its place, with so many MiB left
# fill      a file that takes all that is left; free removes it
# unmount   copy the files back
# The originals stay beside the folder until all of the disk's files are copied back, so each action can be repeated
# after an interruption.
set -euo pipefail

action="${1:?which action? see the head of this file}"
folder="${2:?which folder?}"
behind="${folder}.on_disk"
# Only while this is there, the disk has files that the folder behind it lacks.
in_use="${folder}.in_use"

put_back() {
  if mountpoint --quiet "${folder}"; then
    umount --lazy "${folder}"
  fi
  rm -rf "${folder}"
  mv "${behind}" "${folder}"
}

case "${action}" in
  mount)
    test ! -e "${behind}"
    used="$(du -sm "${folder}" | cut -f1)"
    mv "${folder}" "${behind}"
    trap put_back EXIT
    mkdir -p "${folder}"
    mount -t tmpfs -o "size=$((used + ${3:?how many MiB?}))m" faultline "${folder}"
    cp -a "${behind}/." "${folder}/"
    chmod --reference="${behind}" "${folder}"
    touch "${in_use}"
    trap - EXIT
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
    if test -e "${in_use}"; then
      mount -o remount,rw "${folder}"
      rm -rf "${folder}.moved"
      cp -a "${folder}" "${folder}.moved"
      rm -rf "${behind}"
      mv "${folder}.moved" "${behind}"
      rm "${in_use}"
    fi
    if ! test -e "${behind}"; then
      echo "small_disk.sh: ${folder} is not on a disk of its own" >&2
      exit 1
    fi
    put_back
    ;;
  *)
    echo "small_disk.sh: unknown action '${action}'" >&2
    exit 2
    ;;
esac
