#!/usr/bin/env bash
# parts.sh TARGET...: makes each target in turn, stops at the first that fails and says which, prints what each took.
. "$(dirname "$0")/lib.sh"
names=() seconds=()
table() {
    printf '\n%-16s %8s\n' part seconds
    for i in "${!names[@]}"; do printf '%-16s %8s\n' "${names[$i]}" "${seconds[$i]}"; done
    printf '%-16s %8s\n' total $SECONDS
}
for part in "$@"; do
    printf '\n== %s\n' "$part"
    began=$SECONDS code=0
    "${MAKE:-make}" -C "$root" --no-print-directory "$part" || code=$?
    names+=("$part") seconds+=($((SECONDS - began)))
    if [ $code != 0 ]; then
        table
        printf '\nFAILED in part "%s" (exit code %s). Again, that part alone: make %s\n' "$part" $code "$part" >&2
        exit 1
    fi
done
table
