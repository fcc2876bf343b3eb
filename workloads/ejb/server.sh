#!/bin/sh
# Puts a server with the application into one folder, to answer on a port of this machine that is free.
# Usage: server.sh FOLDER. AS is put in front of what must not run as root.
set -eu
own=$(dirname "$0") folder=$1
wildfly=$(echo "$own"/target/server/wildfly-*)
# Options of the arm are for the server.
unset _JAVA_OPTIONS
if ! test -d "$folder/wildfly"; then
    if test -n "${AS:-}"; then
        # What belongs to root can be read by another user there only.
        cp -R "$wildfly" "$folder/wildfly.new"
        chmod -R a+rX "$folder/wildfly.new"
        mv "$folder/wildfly.new" "$folder/wildfly"
    else
        ln -s "$wildfly" "$folder/wildfly"
    fi
fi
rm -rf "$folder/server"
# shellcheck disable=SC2086
${AS:-} mkdir -p "$folder/server/configuration" "$folder/server/deployments"
cp -R "$wildfly/standalone/configuration/." "$folder/server/configuration/"
sed '/<https-listener /d' "$wildfly/standalone/configuration/standalone.xml" > "$folder/server/configuration/standalone.xml"
cp "$own/target/shop.war" "$folder/server/deployments/"
cp "$own/options" "$folder/options"
chmod -R a+rwX "$folder/server"
chmod a+r "$folder/options"
java -Xmx32m -cp "$own" Load port > "$folder/port"
chmod a+r "$folder/port"
