#!/usr/bin/env bash
# Node 22 and the MCP Inspector in .build/npm, the MCP conformance suites in .build/conformance and .build/conformance-2026
# (two releases of one package, which cannot share a folder). Node comes as an npm package, since they need 22 and Debian 12
# has 18.
. "$(dirname "$0")/lib.sh"
from=$root/tests/setup/node
# packages NAME FROM TO PROGRAM WHAT: what FROM locks is installed in TO, where it brings PROGRAM.
packages() {
    local name=$1 from=$2 to=$3 program=$4 what=$5
    if up_to_date "$name" "$from/package.json" "$from/package-lock.json" && [ -x "$to/node_modules/.bin/$program" ]; then
        say "npm packages ($name): up to date"; return
    fi
    mkdir -p "$to"
    cp "$from/package.json" "$from/package-lock.json" "$to/"
    say "npm packages to install into ${to#"$root"/}: $what"
    # `install`, not `ci`: the lock lacks one optional package for Windows, which `ci` refuses; the versions are the lock's.
    (cd "$to" && npm install --no-save --no-audit --no-fund --loglevel=error) > "$build/npm-$name.log" 2>&1 \
        || die "npm install failed, see $build/npm-$name.log"
    stamp "$name" "$from/package.json" "$from/package-lock.json"
}
packages node "$from" "$build/npm" mcp-inspector "Node 22 and the MCP Inspector with what it needs (300 MB)"
"$build/npm/node_modules/.bin/node" --version > /dev/null || die "the npm package node has brought no program for this machine"
packages conformance "$from/conformance" "$build/conformance" conformance "the MCP conformance suite (50 MB)"
packages conformance-2026 "$from/conformance-2026" "$build/conformance-2026" conformance \
    "the MCP conformance suite for 2026-07-28 (50 MB)"
