import { readFile } from "node:fs/promises";

/** The variables that a process was started with, but for those that the engine gives to every process of its sandbox. */
export async function readGivenVariables(pid: number, own: Readonly<Record<string, string>>): Promise<Readonly<Record<string, string>>> {
  return givenVariables(await readFile(`/proc/${pid}/environ`, "utf8"), own);
}

/** `block` as in `/proc/PID/environ`. A variable of the engine to which another value was given is kept. */
export function givenVariables(block: string, own: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const pairs = block.split("\0").flatMap((one): [string, string][] => {
    const at = one.indexOf("=");
    return at < 1 ? [] : [[one.slice(0, at), one.slice(at + 1)]];
  });
  return Object.fromEntries(pairs.filter(([name, value]) => own[name] !== value));
}
