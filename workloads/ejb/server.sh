#!/bin/sh
# Puts a server with the application into one folder, to answer on a port of this machine that is free.
# Usage: server.sh FOLDER. Never runs as root.
set -eu
own=$(dirname "$0") folder=$1
wildfly=$(echo "$own"/target/server/wildfly-*)
# Options of the arm are for the server.
unset _JAVA_OPTIONS
test -d "$folder/wildfly" || ln -s "$wildfly" "$folder/wildfly"
rm -rf "$folder/server"
mkdir -p "$folder/server/configuration" "$folder/server/deployments"
cp -R "$wildfly/standalone/configuration/." "$folder/server/configuration/"
sed '/<https-listener /d' "$wildfly/standalone/configuration/standalone.xml" > "$folder/server/configuration/standalone.xml"
cp "$own/target/shop.war" "$folder/server/deployments/"
cp "$own/options" "$folder/options"
java -Xmx32m -cp "$own" Load port > "$folder/port"
