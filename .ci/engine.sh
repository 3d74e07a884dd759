#!/usr/bin/env bash
# Summary: Make sure that a container engine answers and that the base image is there.
# Usage: .ci/engine.sh [start [modern | classic] | stop | status]
#
# For CI machines and containers without a running engine; on a laptop with Docker there is nothing to do.
#   start   if no engine answers: install Debian's packages and start dockerd; if the base image is neither
#           present nor can be pulled: make one from Debian's archive. Needs root for both.
#           modern (default): Docker 26, Compose 2 and BuildKit; classic: Docker 20.10 and Compose 1.29.
#           Prints the image to build on, which is the setting BASE_IMAGE or the home-made one.
#   stop    end the dockerd that `start` started; one that was already running is left alone.
#   status  print which engine answers; exit code 1 if none does.
# Environment: ENGINE_HOME (default /var/lib/faultline-engine) keeps dockerd.pid, dockerd.log and a data root for each.
set -euo pipefail

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
ENGINE_HOME="${ENGINE_HOME:-/var/lib/faultline-engine}"
PID_FILE="$ENGINE_HOME/dockerd.pid"
LOG_FILE="$ENGINE_HOME/dockerd.log"
START_LIMIT_SECONDS=60
STOP_LIMIT_SECONDS=60
# A name that no registry serves: the tag of Debian's official image is for that image only.
HOME_MADE=localhost/faultline/base:bookworm
SUITE=bookworm
# Packages of one Debian release each: another engine's are removed (a minus sign).
declare -A ENGINES=(
  [modern]="docker.io/trixie docker-cli/trixie docker-buildx/trixie docker-compose/trixie"
  [classic]="docker.io/bookworm docker-compose/bookworm docker-cli- docker-buildx-"
)
declare -A VERSIONS=([modern]="26. 2." [classic]="20.10. 1.29.")
PLAIN_PACKAGES=(iptables mmdebstrap)

say() { printf 'engine: %s\n' "$*" >&2; }
fail() {
  say "$*"
  exit 1
}

# The setting NAME: STACK_NAME of the environment wins over .env, as everywhere.
setting() {
  local name="STACK_$1"
  printf '%s\n' "${!name:-$(sed --quiet "s/^$name=//p" "$ROOT/.env")}"
}

engine_answers() { docker info >/dev/null 2>&1; }

# A pid file outlives a dockerd that was killed, and its pid may be a zombie's or another program's.
dockerd_runs() {
  local pid
  [[ -s "$PID_FILE" ]] || return 1
  pid="$(<"$PID_FILE")"
  [[ "$(ps --no-headers -o comm= -p "$pid" 2>/dev/null)" == dockerd && "$(ps --no-headers -o state= -p "$pid")" != Z* ]]
}

need_root() { ((EUID == 0)) || fail "$1 needs root; run again with sudo, or start your own Docker engine"; }

# is_installed PAIR: succeeds when the engine and Compose are those of the pair.
is_installed() {
  local engine compose
  read -r engine compose <<<"${VERSIONS[$1]}"
  [[ "$(dpkg-query --show --showformat='${Version}' docker.io 2>/dev/null)" == "$engine"* ]] &&
    [[ "$(dpkg-query --show --showformat='${Version}' docker-compose 2>/dev/null)" == "$compose"* ]]
}

# install_packages PAIR: from the archive that this Debian installs from, with lists of its own, so that nothing else
# on this machine comes from another release.
install_packages() {
  local own apt words
  need_root "installing the $1 engine"
  command -v apt-get >/dev/null || fail "no apt-get here: install Docker yourself (https://docs.docker.com/engine/install/)"
  own="$(sed --quiet 's/^VERSION_CODENAME=//p' /etc/os-release)"
  read -ra words <<<"${ENGINES[$1]}"
  say "no engine answers; installing ${words[*]}"
  apt="$(mktemp --directory)"
  # apt downloads as a user of its own.
  chmod 755 "$apt"
  mkdir --parents "$apt"/{parts,lists/partial,cache/archives/partial}
  for list in /etc/apt/sources.list /etc/apt/sources.list.d/debian.sources; do
    [[ -s "$list" ]] || continue
    cp "$list" "$apt/parts/"
    for suite in bookworm trixie; do
      [[ "$suite" == "$own" ]] || sed "s/\b$own\b/$suite/g" "$list" >"$apt/parts/$suite.${list##*.}"
    done
  done
  local options=(-o Dir::Etc::sourcelist=/dev/null -o "Dir::Etc::sourceparts=$apt/parts" -o "Dir::State::lists=$apt/lists"
    -o "Dir::Cache=$apt/cache" -o "APT::Default-Release=$own")
  export DEBIAN_FRONTEND=noninteractive
  apt-get "${options[@]}" update --quiet=2 >&2
  apt-get "${options[@]}" install --quiet=2 --yes --no-install-recommends --allow-downgrades \
    "${words[@]}" "${PLAIN_PACKAGES[@]}" >&2
  rm --recursive --force "$apt"
}

# A dockerd that ended leaves the network of its host mounted, and a folder with a mount in it cannot be removed.
remove_run_folders() {
  local device mounted
  while read -r device mounted _; do
    [[ "$device" != nsfs || "$mounted" != "$ENGINE_HOME"/run.* ]] || umount "$mounted"
  done </proc/self/mounts
  rm --recursive --force "$ENGINE_HOME"/run.*
}

# start_dockerd PAIR: an older engine cannot read the images and networks of a newer one, so each has its own.
start_dockerd() {
  need_root "starting dockerd"
  mkdir --parents "$ENGINE_HOME"
  # dockerd refuses to start beside a pid file, even one whose process is gone.
  dockerd_runs || rm --force "$PID_FILE"
  say "starting dockerd; log: $LOG_FILE"
  # A new run folder: dockerd would wait for the containerd of a killed dockerd.
  remove_run_folders
  setsid dockerd --pidfile "$PID_FILE" --data-root "$ENGINE_HOME/$1" \
    --exec-root "$(mktemp --directory "$ENGINE_HOME/run.XXXXXX")" >"$LOG_FILE" 2>&1 </dev/null &
  local started=$SECONDS
  until engine_answers; do
    if ((SECONDS - started > START_LIMIT_SECONDS)) || ! kill -0 $! 2>/dev/null; then
      tail --lines=20 "$LOG_FILE" >&2
      fail "dockerd did not answer within $START_LIMIT_SECONDS s; its last lines are above"
    fi
    sleep 0.2
  done
}

# has_image IMAGE: an image with Debian's name that did not come from a registry does not count.
has_image() {
  local digests
  digests="$(docker image inspect --format '{{join .RepoDigests " "}}' "$1" 2>/dev/null)" || return 1
  [[ -n "$digests" || "$1" != debian[:@]* ]]
}

# can_stand_in IMAGE: succeeds when the home-made image may replace it: Debian's own image, by tag or by digest.
can_stand_in() { [[ "$1" == "$HOME_MADE" || "$1" == "debian:$SUITE"* || "$1" == debian@sha256:* ]]; }

# The same packages as the official image: minbase, with ca-certificates as every image here needs them.
make_base_image() {
  local tarball
  need_root "making $HOME_MADE"
  say "making $HOME_MADE from Debian's archive"
  command -v mmdebstrap >/dev/null || fail "mmdebstrap is missing: apt-get install mmdebstrap"
  tarball="$(mktemp --suffix=.tar)"
  # shellcheck disable=SC2064  # the name is wanted as it is now
  trap "rm --force '$tarball'" EXIT
  # Like the official slim image: no manuals, no translations, no cached archives.
  mmdebstrap --quiet --variant=minbase --include=ca-certificates \
    --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-include=/usr/share/doc/*/copyright' \
    "$SUITE" "$tarball" >&2
  docker import --change 'CMD ["bash"]' "$tarball" "$HOME_MADE" >/dev/null
}

start() {
  local pair="${1:-modern}" image pull_error
  [[ -n "${ENGINES[$pair]:-}" ]] || fail "unknown engine '$pair'; one of modern, classic"
  image="$(setting BASE_IMAGE)"
  if engine_answers; then
    say "an engine answers: $(docker info --format '{{.ServerVersion}}, {{.Driver}}, {{.Architecture}}')"
  else
    is_installed "$pair" || install_packages "$pair"
    # A package's own service may have come up by now.
    engine_answers || start_dockerd "$pair"
    say "started: $(docker info --format '{{.ServerVersion}}, {{.Driver}}, {{.Architecture}}')"
  fi
  # The home-made image is never pulled from a registry: there the name belongs to others.
  if has_image "$image"; then
    say "base image $image is here"
  elif [[ "$image" != "$HOME_MADE" ]] && pull_error="$(docker pull --quiet "$image" 2>&1)"; then
    say "base image $image pulled: $(docker image inspect --format '{{join .RepoDigests " "}}' "$image")"
  else
    [[ "$image" == "$HOME_MADE" ]] || say "${pull_error##*$'\n'}"
    can_stand_in "$image" || fail "BASE_IMAGE=$image cannot be pulled, and $HOME_MADE cannot stand in for it"
    has_image "$HOME_MADE" || make_base_image
    image="$HOME_MADE"
    say "base image: $image, $(docker image inspect --format '{{.Size}}' "$image" | numfmt --to=si)B; build with STACK_BASE_IMAGE=$image"
  fi
  printf '%s\n' "$image"
}

stop() {
  if ! dockerd_runs; then
    say "no dockerd of ours runs"
    return
  fi
  local pid started=$SECONDS
  pid="$(<"$PID_FILE")"
  kill -TERM "$pid"
  # A process that has ended may stay as a zombie.
  while dockerd_runs; do
    ((SECONDS - started <= STOP_LIMIT_SECONDS)) || fail "dockerd (pid $pid) did not end within $STOP_LIMIT_SECONDS s"
    sleep 0.2
  done
  remove_run_folders
  say "dockerd stopped; images and volumes stay in $ENGINE_HOME"
}

status() {
  engine_answers || fail "no engine answers; start one: .ci/engine.sh start"
  say "an engine answers: $(docker info --format '{{.ServerVersion}}, {{.Driver}}, {{.Architecture}}')"
  ! dockerd_runs || say "it is ours: pid $(<"$PID_FILE"), log $LOG_FILE"
}

case "${1:-start}" in
  start) start "${2:-}" ;;
  stop | status) "$1" ;;
  -h | --help) sed --quiet '2,/^set/{/^set/d;s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}" ;;
  *) fail "unknown verb '$1'; one of start, stop, status" ;;
esac
