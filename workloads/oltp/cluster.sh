#!/bin/sh
# A cluster of PostgreSQL that lives in one folder and is reached by a socket in it alone.
# Usage: cluster.sh create FOLDER INITDB
#        cluster.sh fill|check FOLDER PSQL KIND [SCALE]
#        cluster.sh load FOLDER PSQL KIND SCALE CLIENTS TRANSACTIONS
# KIND is one of select-only, tpcb, reconnect, order-entry. Never runs as root.
set -eu
own=$(dirname "$0")
action=$1 folder=$2 program=$3 kind=${4:-} scale=${5:-1} clients=${6:-1} transactions=${7:-1}
bin=$(dirname "$program")

sql() { "$bin/psql" -h "$folder" -U hugewise -d postgres -X -q -v ON_ERROR_STOP=1 "$@"; }
bench() { "$bin/pgbench" -h "$folder" -U hugewise "$@" postgres; }

# Nothing is kept for long, so that nothing is synced; what runs by itself between runs would be noise.
create() {
    test -f "$folder/data/PG_VERSION" && return
    cd "$folder"
    "$program" -D "$folder/data" -U hugewise -A trust -E UTF8 --locale=C --no-sync > initdb.log
    cat >> "$folder/data/postgresql.conf" << CONF
listen_addresses = ''
fsync = off
full_page_writes = off
synchronous_commit = off
autovacuum = off
checkpoint_timeout = 1h
max_wal_size = 8GB
max_connections = 200
jit = off
CONF
}

# Data at the first start; into shared buffers at each.
fill() {
    sql -c 'SELECT 1' > "$folder/asked" 2>&1
    if ! test -f "$folder/filled"; then
        if [ "$kind" = order-entry ]; then
            sql -1 -f "$own/order-entry.sql"
            warehouse=1
            while [ "$warehouse" -le "$scale" ]; do
                sql -c "SELECT load_warehouse($warehouse)" > "$folder/asked"
                warehouse=$((warehouse + 1))
            done
            sql -f "$own/order-entry-keys.sql"
        else
            bench -i -q -s "$scale" > "$folder/filled.log" 2>&1
        fi
        sql -c 'CHECKPOINT'
        touch "$folder/filled"
    fi
    sql -c 'CREATE EXTENSION IF NOT EXISTS pg_prewarm' > "$folder/asked" 2>&1
    sql -c "SELECT sum(pg_prewarm(oid)) FROM pg_class
            WHERE relkind IN ('r', 'i') AND relnamespace = 'public'::regnamespace" > "$folder/asked"
}

# The same seed each time: all arms do the same.
load() {
    set -- -n -r -c "$clients" -j "$clients" -t "$transactions" --random-seed=4711
    case $kind in
    select-only) bench "$@" -S ;;
    tpcb) bench "$@" -b tpcb-like ;;
    reconnect) bench "$@" -S -C ;;
    order-entry)
        bench "$@" -M prepared -D "warehouses=$scale" -f "$own/new-order.sql@45" -f "$own/payment.sql@43" \
            -f "$own/order-status.sql@4" -f "$own/delivery.sql@4" -f "$own/stock-level.sql@4"
        ;;
    *)
        echo "oltp has no kind $kind" >&2
        exit 1
        ;;
    esac
}

# Are the data as they must be after any number of transactions?
check() {
    case $kind in
    order-entry) file=order-entry-check.sql ;;
    tpcb) file=tpcb-check.sql ;;
    *) return 0 ;;
    esac
    wrong=$(sql -A -t -f "$own/$file")
    test -z "$wrong" || {
        echo "the data are not consistent: $wrong" >&2
        exit 1
    }
}

"$action"
