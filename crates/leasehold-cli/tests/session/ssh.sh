#!/bin/bash
# Does to one Redis server of a test what a runbook does to a host.
host="$(dirname "$0")/../hosts/$1"
port=$(cat "$host/port")
shift
case "$*" in
"systemctl start redis")
    cd "$host" || exit 1
    redis-server --bind 127.0.0.1 --port "$port" --save "" --appendonly yes --appendfsync always \
        --no-appendfsync-on-rewrite no --daemonize yes --pidfile "$PWD/pid" --logfile "$PWD/log" > /dev/null
    until redis-cli -p "$port" ping 2> /dev/null | grep -q PONG; do sleep 0.1; done
    ;;
"systemctl stop redis")
    [ -e "$host/pid" ] || exit 0
    pid=$(cat "$host/pid")
    kill "$pid"
    while kill -0 "$pid" 2> /dev/null; do sleep 0.1; done
    ;;
"rm -r /var/lib/redis/appendonlydir")
    rm -r "$host/appendonlydir"
    ;;
*)
    echo "ssh: the test does not know the command: $*" >&2
    exit 64
    ;;
esac
