#!/usr/bin/env bash
# Installs, on Debian 12, the servers and tools that the tests run against, if they are missing. Nothing is started:
# the tests start what they need themselves, on free ports.
. "$(dirname "$0")/lib.sh"
PATH=$PATH:/usr/sbin:/sbin

missing=()
want() { command -v "$1" > /dev/null || missing+=("$2"); }
want mosquitto mosquitto                  # a broker that nobody here wrote
want mosquitto_pub mosquitto-clients      # a device made of two shell commands
want prometheus prometheus                # evaluates every expression of the dashboard
want faketime faketime                    # wall clocks that jump
command -v cc > /dev/null || missing+=(gcc libc6-dev)
if [ "${1:-}" = fuzz ]; then want g++ g++; fi # libFuzzer
if ! python3 -c 'import ensurepip, venv' 2> /dev/null; then missing+=(python3 python3-venv); fi
if ! command -v npm > /dev/null; then missing+=(nodejs npm); fi
if [ ${#missing[@]} = 0 ]; then say "Debian packages: nothing is missing"; exit 0; fi

command -v apt-get > /dev/null || die "missing: ${missing[*]}; install them yourself, this script only knows apt-get"
as_root=()
if [ "$(id -u)" != 0 ]; then
    command -v sudo > /dev/null || die "missing: ${missing[*]}; installing them needs root or sudo"
    as_root=(sudo)
fi
say "Debian packages to install: ${missing[*]}"

# dpkg would start each server it installs. policy-rc.d (invoke-rc.d's own hook) says no, for the time of the install.
policy=/usr/sbin/policy-rc.d
if [ ! -e $policy ]; then
    printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee $policy > /dev/null
    "${as_root[@]}" chmod 755 $policy
    trap '"${as_root[@]}" rm -f $policy' EXIT
fi
# A server that was there before keeps its settings; one that this script brings must not start with the next boot.
servers=()
for unit in mosquitto prometheus; do
    case " ${missing[*]} " in *" $unit "*) servers+=("$unit.service");; esac
done

apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o Dpkg::Use-Pty=0)
"${apt[@]}" update > "$build/apt.log" 2>&1 || die "apt-get update failed, see $build/apt.log"
"${apt[@]}" install -y --no-install-recommends "${missing[@]}" >> "$build/apt.log" 2>&1 \
    || die "apt-get install failed, see $build/apt.log"
if [ ${#servers[@]} != 0 ] && command -v systemctl > /dev/null; then
    "${as_root[@]}" systemctl disable --no-reload "${servers[@]}" >> "$build/apt.log" 2>&1 \
        || say "could not disable ${servers[*]}: look whether they start at boot"
fi
say "Debian packages: installed"
