import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { copyFileSync, mkdirSync, readFileSync, realpathSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { RootFiles } from "../containers.ts";
import type { LayerStore } from "../images/layers.ts";

const program = fileURLToPath(new URL("../../fixtures/program.js", import.meta.url));

/** Where the conformance suite's program is in the files of `testBase`. */
export const TEST_PROGRAM = "/opt/test/program.js";

/** Files for sandboxes of tests: Node, a few programs of this machine with their libraries, and the conformance suite's program. */
export async function testBase(layers: LayerStore): Promise<RootFiles> {
  const commands = ["sh", "sleep", "env", "setsid", "cat", "echo", "dd", "ls"].map((name) => realpathSync(which(name)));
  const id = `sha256:${createHash("sha256").update(`${process.version} ${commands}`).update(readFileSync(program)).digest("hex")}`;
  await layers.add(id, async (files) => {
    const copy = (from: string, to: string) => {
      mkdirSync(join(files, dirname(to)), { recursive: true });
      copyFileSync(from, join(files, to));
    };
    copy(process.execPath, "/usr/bin/node");
    copy(program, TEST_PROGRAM);
    for (const command of commands) copy(command, `/usr/bin/${command.split("/").at(-1)}`);
    copy(realpathSync(which("sh")), "/bin/sh");
    for (const library of new Set([process.execPath, ...commands].flatMap(librariesOf))) copy(library, library);
    for (const folder of ["tmp", "etc", "root"]) mkdirSync(join(files, folder), { recursive: true });
  });
  return { layers: [id], config: null };
}

function which(name: string): string {
  return execFileSync("sh", ["-c", 'command -v "$0"', name], { encoding: "utf8", env: { PATH: "/usr/bin:/bin" } })
    .trim()
    .replace(/^echo$/, "/bin/echo");
}

function librariesOf(path: string): string[] {
  return [...execFileSync("ldd", [path], { encoding: "utf8" }).matchAll(/(\/\S+) \(0x/g)].map(([, library]) => library as string);
}
