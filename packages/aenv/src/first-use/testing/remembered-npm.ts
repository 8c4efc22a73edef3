import { mkdirSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";

/**
 * Puts an `npm` and an `npx` first on PATH that do nothing a second time: `npx` starts what is installed already, and `npm install` copies
 * the result of the same install for the same package.json. Everything else is done by the real ones.
 */
export function withRememberedNpm(home: string, env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const bin = join(home, "remembered");
  mkdirSync(bin, { recursive: true });
  const real = `PATH=$(printf %s "$PATH" | sed 's|${bin}:||')`;
  writeFileSync(join(bin, "npx"), npx(real), { mode: 0o755 });
  writeFileSync(join(bin, "npm"), npm(real, join(home, "installed")), { mode: 0o755 });
  return { ...env, PATH: `${bin}${delimiter}${env.PATH}` };
}

/** Looks where npx looks: in this folder and the folders above, and then in the folder in which npx itself has installed the package. */
const npx = (real: string) => `#!/bin/bash
folder=$PWD
while [ ! -x "$folder/node_modules/.bin/$1" ] && [ "$folder" != / ]; do folder=$(dirname "$folder"); done
for program in "$folder/node_modules/.bin/$1" "$npm_config_cache"/_npx/*/node_modules/.bin/"$1"; do
  if [ -x "$program" ]; then
    export PATH="$(dirname "$program"):$PATH"
    exec "$program" "\${@:2}"
  fi
done
${real} exec npx "$@"
`;

/** The files of packages are hard links. */
const npm = (real: string, kept: string) => `#!/bin/bash
set -e
folder=.
case "$*" in
  install) added= ;;
  "install aenvironment") added=aenvironment ;;
  "install --prefix $3") folder=$3 added= ;;
  *) ${real} exec npm "$@" ;;
esac
key=$( (echo "$added"; cat "$folder"/package*.json 2> /dev/null) | sha256sum | cut -c 1-32)
if [ -d "${kept}/$key" ]; then
  cp -alT "${kept}/$key/node_modules" "$folder/node_modules"
  cp "${kept}/$key"/package*.json "$folder"
else
  (${real} exec npm "$@")
  mkdir -p "${kept}"
  new=$(mktemp -d -p "${kept}")
  cp -alT "$folder/node_modules" "$new/node_modules"
  cp "$folder"/package*.json "$new"
  mv -T "$new" "${kept}/$key"
fi
`;
