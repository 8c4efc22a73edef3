#!/usr/bin/env node
// Everything here must run on Node 14: it is what an old Node sees before it learns that it is too old.
import { spawn, spawnSync } from "node:child_process";
import { existsSync, realpathSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { isNewEnough, tooOld } from "./node-version.js";

const here = dirname(realpathSync(fileURLToPath(import.meta.url)));

if (isNewEnough(process.versions.node)) {
  const source = join(here, "../src/main.ts");
  await import(existsSync(source) ? "../src/main.ts" : "../lib/main.js");
} else {
  const newer = process.env.AENV_STARTED_BY_NODE === undefined ? findNewerNode() : null;
  if (newer === null) giveUp();
  else goOnWith(newer);
}

/** The nearest `node_modules/.bin/node` that is new enough, looking up from the project and then from this package. */
function findNewerNode() {
  const own = realpathSync(process.execPath);
  for (const start of [process.cwd(), here]) {
    for (let folder = start; ; folder = dirname(folder)) {
      const candidate = join(folder, "node_modules", ".bin", "node");
      if (existsSync(candidate) && realpathSync(candidate) !== own && answersNewEnough(candidate)) return candidate;
      if (folder === dirname(folder)) break;
    }
  }
  return null;
}

function answersNewEnough(candidate) {
  const { status, stdout } = spawnSync(candidate, ["--version"], { encoding: "utf8", timeout: 10000 });
  return status === 0 && isNewEnough(stdout.trim().replace(/^v/, ""));
}

function goOnWith(node) {
  // The variable keeps this from happening twice.
  const env = Object.assign({}, process.env, { AENV_STARTED_BY_NODE: process.versions.node });
  // Listened for before there is a child: it may be up, and someone may want it down, before the next line is reached.
  const signals = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"];
  for (const signal of signals) process.on(signal, () => child.kill(signal));
  const child = spawn(node, process.execArgv.concat(process.argv.slice(1)), { stdio: "inherit", env });
  child.on("error", (error) => {
    process.stderr.write(`aenv: could not start ${node}: ${error.message}\n`);
    process.exit(1);
  });
  child.on("exit", (code, signal) => {
    if (signal === null) process.exit(code);
    for (const each of signals) process.removeAllListeners(each);
    process.kill(process.pid, signal);
  });
}

function giveUp() {
  process.stderr.write(`${tooOld("aenv")}\n`);
  process.exitCode = 1;
}
