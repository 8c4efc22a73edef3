import { posix } from "node:path";

/** One instruction of a Dockerfile, with continued lines joined. */
export interface Instruction {
  readonly name: string;
  readonly text: string;
}

export function parseDockerfile(source: string): Instruction[] {
  const lines = source
    .split(/\r?\n/)
    .filter((line) => !/^\s*#/.test(line))
    .join("\n")
    .replace(/\\[ \t]*\n/g, " ")
    .split("\n");
  return lines.flatMap((line) => {
    const [, name, text = ""] = /^\s*([A-Za-z]+)(?:\s+(.*?))?\s*$/.exec(line) ?? [];
    return name === undefined ? [] : [{ name: name.toUpperCase(), text }];
  });
}

/** The working directory of the last stage, for engines that do not know the image's configuration; null if none is set. */
export function workdirOf(source: string): string | null {
  let workdir: string | null = null;
  for (const { name, text } of parseDockerfile(source)) {
    if (name === "FROM") workdir = null;
    if (name === "WORKDIR") workdir = posix.resolve(workdir ?? "/", text.replace(/^"(.*)"$/, "$1"));
  }
  return workdir;
}
