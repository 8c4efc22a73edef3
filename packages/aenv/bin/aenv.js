#!/usr/bin/env node
// Everything here must run on Node 14: an old Node runs it to print that it is too old.
import { spawn, spawnSync } from "node:child_process";
import { existsSync, realpathSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { isNewEnough, tooOld } from "./node-version.js";

const here = dirname(realpathSync(fileURLToPath(import.meta.url)));

if (isNewEnough(process.versions.node)) {
  await keepCompiledCode();
  const source = join(here, "../src/main.ts");
  await import(existsSync(source) ? "../src/main.ts" : "../lib/main.js");
} else {
  const newer = process.env.AENV_STARTED_BY_NODE === undefined ? findNewerNode() : null;
  if (newer === null) refuse();
  else continueWith(newer);
}

/** The next command starts in half the time. In the user's own folder: code that others can write must not run. */
async function keepCompiledCode() {
  const { enableCompileCache } = await import("node:module");
  enableCompileCache(process.env.NODE_COMPILE_CACHE || join(homedir(), ".cache", "aenv", "compiled"));
}

/** The nearest `node_modules/.bin/node` that is new enough, in the folders above the project and then above this package. */
function findNewerNode() {
  const own = realpathSync(process.execPath);
  for (const start of [process.cwd(), here]) {
    for (let folder = start; ; folder = dirname(folder)) {
      const candidate = join(folder, "node_modules", ".bin", "node");
      if (existsSync(candidate) && realpathSync(candidate) !== own && isNodeNewEnough(candidate)) return candidate;
      if (folder === dirname(folder)) break;
    }
  }
  return null;
}

function isNodeNewEnough(candidate) {
  const { status, stdout } = spawnSync(candidate, ["--version"], { encoding: "utf8", timeout: 10000 });
  return status === 0 && isNewEnough(stdout.trim().replace(/^v/, ""));
}

function continueWith(node) {
  // With this variable set, the child does not search again.
  const env = Object.assign({}, process.env, { AENV_STARTED_BY_NODE: process.versions.node });
  // Registered before the spawn: a signal may arrive as soon as the child runs.
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

function refuse() {
  process.stderr.write(`${tooOld("aenv")}\n`);
  process.exitCode = 1;
}
