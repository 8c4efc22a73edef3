#!/bin/sh
# docker-program.sh buildx|compose|buildkitd
# Builds a plugin of the program docker, or the daemon of BuildKit, and prints the folder that contains it. A test links a plugin into its
# cli-plugins. It is kept in the cache folder, so a second call returns at once. Needs Go.
set -eu

# Compose names the versions of the other two that it uses. All are built with the same versions of their packages, most of which they
# share, so that the second build takes a fraction of the first.
compose=v2.29.7
buildx=v0.17.1
buildkit=v0.16.0
case ${1-} in
  buildx) name=docker-buildx version=$buildx module=github.com/docker/buildx package=cmd/buildx variable=version.Version ;;
  compose) name=docker-compose version=$compose module=github.com/docker/compose/v2 package=cmd variable=internal.Version ;;
  buildkitd) name=buildkitd version=$buildkit module=github.com/moby/buildkit package=cmd/buildkitd variable=version.Version ;;
  *) echo "usage: docker-program.sh buildx|compose|buildkitd" >&2; exit 2 ;;
esac
out=${XDG_CACHE_HOME:-$HOME/.cache}/aenv/$name-$version
if [ -x "$out/$name" ]; then
  echo "$out"
  exit
fi
echo "$name: building $version (a few minutes the first time)" >&2

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export GOWORK=off GOFLAGS=-mod=mod CGO_ENABLED=0
check() {
  found=$(go mod download -json "$1" | sed -n 's/^.*"Sum": "\(.*\)".*$/\1/p')
  [ "$found" = "$2" ] || { echo "$1 has the checksum $found, not $2" >&2; exit 1; }
}
check "github.com/docker/compose/v2@$compose" h1:92dZa2M71isE1Qi6D7z1i+0P1pyeyWMwrxBuRIXe52w=
check "github.com/docker/buildx@$buildx" h1:9ob2jGp4+W9PxWw68GsoNFp+eYFc7eUoRL9VljLCSM4=
check "github.com/moby/buildkit@$buildkit" h1:wOVBj1o5YNVad/txPQNXUXdelm7Hs/i0PUFjzbK0VKE=
go mod init build 2>/dev/null
go get "github.com/docker/compose/v2/cmd@$compose" "github.com/docker/buildx/cmd/buildx@$buildx" "$module/$package@$version" 2>/dev/null
go build -trimpath -ldflags "-s -w -X $module/$variable=$version" -o "$name" "$module/$package"
mkdir -p "$out"
mv "$name" "$out/$name.$$"
mv "$out/$name.$$" "$out/$name"
echo "$out"
