import { execFileSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, realpathSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";

const COMMANDS = [
  ...["bash", "basename", "cat", "chmod", "chown", "cmp", "cp", "cut", "date", "dirname", "env", "false", "find", "grep", "head", "id"],
  ...[
    "kill",
    "ln",
    "ls",
    "mkdir",
    "mkfifo",
    "mv",
    "perl",
    "printf",
    "pwd",
    "rm",
    "sed",
    "seq",
    "setsid",
    "sh",
    "sleep",
    "sort",
    "stat",
    "tail",
  ],
  ...["tar", "tee", "test", "timeout", "touch", "tr", "true", "wc"],
];

/** Writes programs of this machine to a folder, as the base of images. */
export function writeBase(root: string): void {
  mkdirSync(root, { recursive: true });
  for (const name of ["bin", "sbin", "lib", "lib64"]) {
    mkdirSync(join(root, "usr", name), { recursive: true });
    symlinkSync(`usr/${name}`, join(root, name));
  }
  for (const command of COMMANDS) {
    const path = realpathSync(execFileSync("which", [command], { encoding: "utf8" }).trim());
    copyInto(root, path, `/usr/bin/${command}`);
    for (const library of librariesOf(path)) copyInto(root, library, library.startsWith("/usr/") ? library : `/usr${library}`);
  }
}

function copyInto(root: string, from: string, to: string): void {
  mkdirSync(dirname(join(root, to)), { recursive: true });
  if (!existsSync(join(root, to))) copyFileSync(from, join(root, to));
}

function librariesOf(path: string): string[] {
  const listed = execFileSync("ldd", [path], { encoding: "utf8" });
  return [...listed.matchAll(/(\/\S+) \(0x/g)].map(([, library]) => library as string);
}
