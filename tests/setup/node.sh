#!/usr/bin/env bash
# Node 22 and the MCP Inspector in .build/npm. Node comes as an npm package, since the Inspector needs 22 and Debian 12 has 18.
. "$(dirname "$0")/lib.sh"
npm=$build/npm from=$root/tests/setup/node
if up_to_date node "$from/package.json" "$from/package-lock.json" && [ -x "$npm/node_modules/.bin/mcp-inspector" ]; then
    say "npm packages: up to date"; exit 0
fi
mkdir -p "$npm"
cp "$from/package.json" "$from/package-lock.json" "$npm/"
say "npm packages to install into .build/npm: Node 22 and the MCP Inspector with what it needs (300 MB)"
# `install`, not `ci`: the lock lacks one optional package for Windows, which `ci` refuses; the versions are the lock's.
(cd "$npm" && npm install --no-save --no-audit --no-fund --loglevel=error) > "$build/npm.log" 2>&1 \
    || die "npm install failed, see $build/npm.log"
"$npm/node_modules/.bin/node" --version > /dev/null || die "the npm package node has brought no program for this machine"
stamp node "$from/package.json" "$from/package-lock.json"
