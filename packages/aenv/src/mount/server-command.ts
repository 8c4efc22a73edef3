import { basename } from "node:path";
import { Failure } from "../terminal/failure.ts";

/** A command line that starts an MCP server, by what has to be installed for it. */
export type ServerCommand =
  | { readonly kind: "npm"; readonly spec: string; readonly bin: string | null; readonly args: readonly string[] }
  | { readonly kind: "pypi"; readonly spec: string; readonly script: string | null; readonly args: readonly string[] }
  | { readonly kind: "file"; readonly file: string; readonly args: readonly string[] };

const HINT =
  "Mount a package with `npx -y PACKAGE` or `uvx PACKAGE`, a file of JavaScript with `node FILE`, or a server that runs elsewhere with its URL.";

/** Reads `npx -y pkg args`, `uvx pkg args` or `node file args`. */
export function parseServerCommand(words: readonly string[]): ServerCommand {
  const [program = "", ...rest] = words;
  const name = basename(program);
  if (name === "npx") return readNpx(rest);
  if (name === "npm" && (rest[0] === "exec" || rest[0] === "x")) return readNpx(rest.slice(1));
  if (name === "uvx") return readUvx(rest);
  if (name === "uv" && rest[0] === "tool" && rest[1] === "run") return readUvx(rest.slice(2));
  if (name === "node" || name === "bun") {
    const [file, ...args] = rest;
    if (file === undefined || file.startsWith("-"))
      throw new Failure(`${name} needs a file as its first argument`, { exit: "usage", hint: HINT });
    return { kind: "file", file, args };
  }
  throw new Failure(`'${program}' cannot be mounted`, { exit: "usage", hint: HINT });
}

function readNpx(words: readonly string[]): ServerCommand {
  const { value: spec, rest } = options(words, { flags: ["-y", "--yes", "-q", "--quiet", "--"], values: ["-p", "--package"] });
  const [first, ...args] = rest;
  if (spec !== null) return { kind: "npm", spec, bin: first ?? null, args };
  if (first === undefined) throw new Failure("npx needs the name of a package", { exit: "usage", hint: HINT });
  return { kind: "npm", spec: first, bin: null, args };
}

function readUvx(words: readonly string[]): ServerCommand {
  const { value: spec, rest } = options(words, { flags: ["-q", "--quiet", "--"], values: ["--from"] });
  const [first, ...args] = rest;
  if (first === undefined) throw new Failure("uvx needs the name of a package", { exit: "usage", hint: HINT });
  if (spec !== null) return { kind: "pypi", spec, script: first, args };
  // uvx writes versions as `pkg@1.2`, pip as `pkg==1.2`.
  const [, name = first, version] = /^([\w.-]+)@([\w.]+)$/.exec(first) ?? [];
  return { kind: "pypi", spec: version === undefined || version === "latest" ? name : `${name}==${version}`, script: null, args };
}

/** The options before the first word that is none. */
function options(words: readonly string[], known: { readonly flags: readonly string[]; readonly values: readonly string[] }) {
  let value: string | null = null;
  let at = 0;
  for (; at < words.length; at++) {
    const word = words[at] as string;
    if (known.flags.includes(word)) continue;
    const [option = "", given] = word.split("=", 2);
    if (known.values.includes(option)) value = given ?? words[++at] ?? null;
    else if (word.startsWith("-")) throw new Failure(`the option ${word} is not supported here`, { exit: "usage", hint: HINT });
    else break;
  }
  return { value, rest: words.slice(at) };
}
