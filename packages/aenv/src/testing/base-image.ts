import { execFileSync } from "node:child_process";
import { copyFileSync, createWriteStream, mkdirSync } from "node:fs";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { type Architecture, initProgram, openBaseRoot } from "@aenv/sandbox";
import { loadClusterImage, temporaryTree } from "@aenv/testing";
import { cacheFolder } from "../platform-tests/bundles.ts";
import { runnerCode } from "../server/runner.ts";

/** Loads the base image of sandboxes, made of files of this machine, into the cluster for tests. Returns its name. */
export async function loadBaseImage(): Promise<string> {
  const base = await openBaseRoot({ folder: join(cacheFolder, "base-root"), runner: await runnerCode() });
  const init = await initProgram(process.arch as Architecture);
  using tree = temporaryTree();
  const archive = join(tree.path, "root.tar");
  await pipeline(base.archive(), createWriteStream(archive));
  const name = `aenv.local/base-root:${base.digest.slice(-12)}-${init.split("init-")[1]?.slice(0, 12)}`;
  await loadClusterImage(name, () => {
    const root = join(tree.path, "root");
    mkdirSync(root);
    execFileSync("tar", ["--extract", "--file", archive, "--directory", root]);
    copyFileSync(init, join(root, "opt/aenv/init"));
    return root;
  });
  return name;
}
