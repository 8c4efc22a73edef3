#!/bin/sh
# Builds the plugin of Docker with which Harbor runs tasks, `docker compose`, and prints the folder that contains it.
# It is kept in the cache folder, so a second call returns at once. Needs Go.
set -eu

version=v2.29.7
sum=h1:92dZa2M71isE1Qi6D7z1i+0P1pyeyWMwrxBuRIXe52w=
out=${XDG_CACHE_HOME:-$HOME/.cache}/aenv/docker-compose-$version
if [ -x "$out/docker-compose" ]; then
  echo "$out"
  exit
fi
echo "docker compose: building $version (a few minutes the first time)" >&2

module=github.com/docker/compose/v2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export GOWORK=off GOFLAGS=-mod=mod CGO_ENABLED=0
found=$(go mod download -json "$module@$version" | sed -n 's/^.*"Sum": "\(.*\)".*$/\1/p')
[ "$found" = "$sum" ] || { echo "docker compose: $version has the checksum $found, not $sum" >&2; exit 1; }
go mod init build 2>/dev/null
go get "$module/cmd@$version" 2>/dev/null
go build -trimpath -ldflags "-s -w -X $module/internal.Version=$version" -o docker-compose "$module/cmd"
mkdir -p "$out"
mv docker-compose "$out/docker-compose.$$"
mv "$out/docker-compose.$$" "$out/docker-compose"
echo "$out"
