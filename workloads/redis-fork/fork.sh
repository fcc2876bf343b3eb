#!/bin/sh
# Has a redis-server fork nine times as it does to save its data, and prints the median of the times that the forks took, for each GB of
# its memory, as Redis' documentation does. The process
# that would write the data is told to give up (SIGUSR1, as redis-server itself does): the fork is over by then.
# Usage: fork.sh SOCKET
set -eu
socket=$1
field() { redis-cli -s "$socket" info "$1" | tr -d '\r' | sed -n "s/^$2://p"; }
server=$(field server process_id)
times=
for _ in 1 2 3 4 5 6 7 8 9; do
    redis-cli -s "$socket" bgsave > /dev/null
    # It may have ended by itself.
    for child in $(cat "/proc/$server/task/$server/children"); do kill -USR1 "$child" || true; done
    while [ "$(field persistence rdb_bgsave_in_progress)" = 1 ]; do sleep 0.02; done
    times="$times $(field stats latest_fork_usec)"
done
# shellcheck disable=SC2086
median=$(printf '%s\n' $times | sort -n | sed -n 5p)
awk -v us="$median" -v bytes="$(field memory used_memory_rss)" 'BEGIN { printf "fork: %.3f ms per GB\n", us / 1e3 / (bytes / 1e9) }'
