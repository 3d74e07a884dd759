#!/usr/bin/env bash
# Summary: Cut a program off from others on this machine, both ways, and join it again; as root, on Linux.
# Usage: faultline/faults/cut_off.sh check | cut PORTS OTHERS | join PORTS
#
# cut    the program that listens on PORTS no longer reaches OTHERS, and what is not this program no longer reaches PORTS.
#        Both are ports with commas between them. Its other ports, and its connections to itself, are not touched.
# join   undo it, however far it came
# check  whether the firewall of this machine can do that
#
# All connections are on loopback, where a port says which service is asked, and not who asks. The firewall tells who asks
# by the cgroup: the program is put into one of its own. A connection keeps the cgroup of its first moment, so those that
# are there are cut by their two ports.
set -euo pipefail

action="${1:?which action? see the head of this file}"
cgroups="$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)"

fail() {
  echo "cut_off.sh: $1" >&2
  exit 1
}

# The cgroup of a process, below ${cgroups}.
cgroup_of() {
  sed -n 's/^0:://p' "/proc/$1/cgroup"
}

# The process that listens on a port.
listens_on() {
  ss -Hltnp "sport = :$1" | sed -nE 's/.*pid=([0-9]+),.*/\1/p' | head -n 1
}

# Rules for each existing connection to one of the ports: RETURN for those of the program to itself, DROP for those
# between it and another one.
rules_of_connections() {
  ss -Htnp state established | awk -v pid="$1" -v own=",$2," -v others=",$3," -v chain="$4" '
    { from = $3; to = $4; sub(/.*:/, "", from); sub(/.*:/, "", to); mine = index($0, "pid=" pid ",") > 0 }
    index(own, "," to ",") { target = mine ? "RETURN" : "DROP" }
    index(others, "," to ",") { target = mine ? "DROP" : "" }
    !index(own others, "," to ",") { target = "" }
    target != "" {
      print "-I " chain " -p tcp --sport " from " --dport " to " -j " target
      print "-I " chain " -p tcp --sport " to " --dport " from " -j " target
    }'
}

change() {
  { echo "*filter" && cat && echo COMMIT; } | iptables-restore --wait 5 --noflush
}

join() {
  local chain="$1" folder pid
  while iptables --wait 5 --delete OUTPUT --jump "${chain}" 2>/dev/null; do :; done
  if iptables --wait 5 --flush "${chain}" 2>/dev/null; then
    iptables --wait 5 --delete-chain "${chain}"
  fi
  folder="$(find "${cgroups}" -type d -name "${chain}" | head -n 1)"
  if test -n "${folder}"; then
    while read -r pid; do
      # It may end meanwhile.
      echo "${pid}" >"${folder%/*}/cgroup.procs" || true
    done <"${folder}/cgroup.procs"
    rmdir "${folder}"
  fi
}

test -n "${cgroups}" || fail "this machine has no cgroups of version 2"
case "${action}" in
  check)
    for name in ss iptables iptables-restore; do
      command -v "${name}" >/dev/null || fail "${name} was not found"
    done
    chain="faultline-check-$$"
    trap 'join "${chain}"' EXIT
    own="$(cgroup_of $$)"
    mkdir "${cgroups}${own%/}/${chain}" || fail "no cgroup can be made in ${cgroups}${own}"
    iptables --wait 5 --new-chain "${chain}"
    iptables --wait 5 --append "${chain}" --match cgroup --path "${own%/}/${chain}" --jump DROP
    ;;
  cut)
    own="${2:?which ports?}" others="${3:?which other ports?}"
    chain="faultline-${own%%,*}"
    pid="$(listens_on "${own%%,*}")"
    test -n "${pid}" || fail "nothing listens on port ${own%%,*}"
    cgroup="$(cgroup_of "${pid}")"
    cgroup="${cgroup%/}/${chain}"
    mkdir "${cgroups}${cgroup}"
    echo "${pid}" >"${cgroups}${cgroup}/cgroup.procs"
    change <<RULES
:${chain} - [0:0]
$(rules_of_connections "${pid}" "${own}" "${others}" "${chain}")
-A ${chain} -p tcp -m multiport --dports ${others} -m cgroup --path ${cgroup} -j DROP
-A ${chain} -p tcp -m multiport --dports ${own} -m cgroup ! --path ${cgroup} -j DROP
-I OUTPUT -j ${chain}
RULES
    # Those that were made meanwhile: no more can come.
    rules_of_connections "${pid}" "${own}" "${others}" "${chain}" | change
    ;;
  join) join "faultline-$(cut -d, -f1 <<<"${2:?which ports?}")" ;;
  *)
    echo "cut_off.sh: unknown action '${action}'" >&2
    exit 2
    ;;
esac
