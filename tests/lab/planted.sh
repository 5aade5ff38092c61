#!/usr/bin/env bash
# Does the lab find anything at all? Each patch in tests/lab/planted takes away one thing that every answer rests on; with it
# the parts of the lab that it names have to fail, and without any of them to pass.
#
#   tests/lab/planted.sh [NAME...]     names of patches, without .patch; all of them, if there are none
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

patches=("$@")
if [ "${#patches[@]}" = 0 ]; then
    for patch in tests/lab/planted/*.patch; do
        patch=${patch##*/}
        patches+=("${patch%.patch}")
    done
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tree=$work/tree
mkdir "$tree"
# As it is, with what is not committed yet. The time is now, so that nothing counts as built before.
git ls-files -z --cached --others --exclude-standard |
    tar --create --null --files-from=- | tar --extract --touch --directory="$tree"
# Beside what is built here, which stays as it is; what others wrote need not be built again.
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}/planted

build() { (cd "$tree" && cargo test --quiet --test suite --no-run); }

# Runs these parts; the last of what they say is in $work/said.
lab() { (cd "$tree" && cargo test --quiet --test suite -- "$@" >"$work/said" 2>&1); }

parts_of() { sed -n 's/^Parts: //p' "tests/lab/planted/$1.patch"; }

all_parts=()
for patch in "${patches[@]}"; do
    read -ra parts <<<"$(parts_of "$patch")"
    [ "${#parts[@]}" -gt 0 ] || { echo "$patch: it names no parts of the lab" >&2; exit 1; }
    all_parts+=("${parts[@]}")
done

mapfile -t all_parts < <(printf '%s\n' "${all_parts[@]}" | sort -u)

echo "nothing planted: ${all_parts[*]}"
build
if ! lab "${all_parts[@]}"; then
    cat "$work/said"
    echo "these fail without anything planted" >&2
    exit 1
fi

missed=0
table=()
for patch in "${patches[@]}"; do
    echo "planted: $patch"
    patch_file=$PWD/tests/lab/planted/$patch.patch
    # Outside of a repository, `git apply` patches files as they are.
    (cd "$tree" && GIT_CEILING_DIRECTORIES=$work git apply "$patch_file") || { echo "$patch: it no longer applies" >&2; exit 1; }
    build || { echo "$patch: it no longer builds" >&2; exit 1; }
    read -ra parts <<<"$(parts_of "$patch")"
    lab "${parts[@]}" || true
    caught=$(sed -n '/^failures:$/,$s/^    \(lab::.*\)$/\1/p' "$work/said" | sort -u)
    if [ -z "$caught" ]; then
        missed=$((missed + 1))
        caught="NOT CAUGHT"
        cat "$work/said"
    fi
    while read -r test; do
        table+=("$(printf '%-16s %s' "$patch" "$test")")
    done <<<"$caught"
    (cd "$tree" && GIT_CEILING_DIRECTORIES=$work git apply --reverse "$patch_file")
done

printf '\n%-16s %s\n' planted "caught by"
printf '%s\n' "${table[@]}"
[ "$missed" = 0 ] || { echo "$missed not caught" >&2; exit 1; }
