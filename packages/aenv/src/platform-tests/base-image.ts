import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync } from "node:fs";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { type Architecture, initProgram, openBaseRoot } from "@aenv/sandbox";
import { loadClusterImage, temporaryTree } from "@aenv/testing";
import { runnerCode } from "../server/runner.ts";
import { cacheFolder } from "./bundles.ts";

/** Loads the base image of sandboxes, made of files of this machine, into the cluster for tests. Returns its name. */
export async function loadBaseImage(): Promise<string> {
  const base = await openBaseRoot({ folder: join(cacheFolder, "base-root"), runner: await runnerCode() });
  using tree = temporaryTree();
  const tar = spawn("tar", ["--extract", "--directory", tree.path], { stdio: ["pipe", "ignore", "inherit"] });
  const done = once(tar, "exit");
  await pipeline(base.archive(), tar.stdin);
  await done;
  const init = await initProgram(process.arch as Architecture);
  copyFileSync(init, join(tree.path, "opt/aenv/init"));
  const name = `aenv.local/base-root:${base.digest.slice(-12)}`;
  await loadClusterImage(name, tree.path);
  return name;
}
