#!/usr/bin/env bash
# A virtual environment in .build/venv with the exact versions of requirements.txt; with `lint`, those of requirements-lint.txt too.
. "$(dirname "$0")/lib.sh"
venv=$build/venv
install() {
    local name=$1 list=$root/tests/setup/$1.txt
    if up_to_date "$name" "$list" && [ -x "$venv/bin/python" ]; then say "Python $name: up to date"; return; fi
    [ -x "$venv/bin/python" ] || python3 -m venv "$venv"
    say "Python packages to install into .build/venv: $(grep -cE '^[A-Za-z]' "$list") of tests/setup/$name.txt"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check -r "$list" \
        || die "pip could not install tests/setup/$name.txt"
    stamp "$name" "$list"
}
install requirements
if [ "${1:-}" = lint ]; then install requirements-lint; fi
