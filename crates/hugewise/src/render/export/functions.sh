set -eu

stop() { echo "stopped: $1" >&2; exit 1; }

# Of a list such as `always [madvise] never` the word in brackets.
now() {
    value=$(cat "$1")
    case $value in *'['*']'*) value=${value#*'['}; value=${value%%']'*} ;; esac
    printf '%s' "$value"
}

# planned FILE BEFORE
planned() {
    [ "$(now "$1")" = "$2" ] || stop "$1 is $(now "$1"), not $2 as planned"
}

# All steps are run twice: first each only looks, so that nothing is written if one would stop.
looks() { [ "$phase" = look ]; }

# setting FILE BEFORE AFTER
setting() {
    planned "$1" "$2"
    ! looks || return 0
    printf '%s\n' "$3" > "$1"
    [ "$(now "$1")" = "$3" ] || stop "$1 is $(now "$1") after writing $3"
}

# pool FILE BEFORE PAGES
pool() {
    planned "$1" "$2"
    ! looks || return 0
    printf '%s\n' "$3" > "$1"
    [ "$(cat "$1")" -ge "$3" ] || stop "$1 has $(cat "$1") pages, not $3: memory is too fragmented or too full"
}

# new FILE MODE OWNER CONTENT
new() {
    [ ! -e "$1" ] || stop "$1 exists already"
    ! looks || return 0
    mkdir -p "$(dirname "$1")"
    (umask 077; printf '%s' "$4" > "$1.new")
    chmod "$2" "$1.new"; chown "$3" "$1.new"; mv "$1.new" "$1"
}

# edit FILE SHA256 [LINE COUNT TEXT]...: permissions and owner stay
edit() {
    file=$1
    [ "$(sha256sum < "$file")" = "$2  -" ] || stop "$file is not as planned"
    ! looks || return 0
    shift 2
    (umask 077; edited "$@" > "$file.new")
    cat "$file.new" > "$file"
    rm "$file.new"
}

# edited [LINE COUNT TEXT]...: at each LINE of $file COUNT lines go, and TEXT comes
edited() {
    at=1
    while [ $# -gt 0 ]; do
        [ "$1" -le "$at" ] || sed -n "$at,$(($1 - 1))p" "$file"
        printf '%s' "$3"
        at=$(($1 + $2))
        shift 3
    done
    sed -n "$at,\$p" "$file"
}

# hugetlbfs DIRECTORY OPTIONS
hugetlbfs() {
    ! looks || return 0
    mkdir -p "$1"
    mount -t hugetlbfs -o "$2" none "$1"
}

[ "$(id -u)" = 0 ] || stop 'this needs root: run it with sudo'
