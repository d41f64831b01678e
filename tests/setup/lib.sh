# shellcheck shell=bash
# Sourced by the set-up scripts and by tests/setup/parts.sh: where things go, and how a stamp works.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=$root/.build
mkdir -p "$build/stamps"

say() { printf '%s\n' "setup: $*"; }
die() { printf '%s\n' "setup: $*" >&2; exit 1; }

# up_to_date NAME FILE...: true if stamp NAME was written for exactly these files.
up_to_date() {
    local name=$1; shift
    [ -f "$build/stamps/$name" ] && [ "$(cat "$build/stamps/$name")" = "$(cat "$@" | sha256sum)" ]
}
# stamp NAME FILE...: remember that NAME is done for exactly these files.
stamp() {
    local name=$1; shift
    cat "$@" | sha256sum > "$build/stamps/$name"
}
