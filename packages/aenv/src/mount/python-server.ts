import { globSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { basename, join } from "node:path";
import { Failure } from "../terminal/failure.ts";
import { type ProgramRun, runProgram } from "./run-program.ts";
import type { ServerCommand } from "./server-command.ts";

export interface PythonServer {
  readonly name: string;
  readonly version: string;
  /** `3.12`: compiled modules fit only this one. */
  readonly python: string;
  readonly command: readonly string[];
}

/** Installs a package of PyPI into a folder. Only built packages are used, so no code of them runs. */
export async function installFromPypi(
  { spec, script, args }: Extract<ServerCommand, { kind: "pypi" }>,
  folder: string,
  run: Pick<ProgramRun, "env" | "signal">,
): Promise<PythonServer> {
  mkdirSync(folder, { recursive: true });
  const pip = [
    "-m",
    "pip",
    "install",
    "--quiet",
    "--disable-pip-version-check",
    "--only-binary",
    ":all:",
    "--no-compile",
    "--target",
    folder,
  ];
  await runProgram("python3", [...pip, "--", spec], { what: `pip install ${spec}`, cwd: folder, ...run });
  const python = (
    await runProgram("python3", ["-c", "import sys; print('%d.%d' % sys.version_info[:2])"], {
      what: "python3",
      cwd: folder,
      ...run,
    })
  ).trim();
  const wanted = normalized(/^[\w.-]+/.exec(spec)?.[0] ?? spec);
  const info = globSync("*.dist-info", { cwd: folder }).find(
    (one) => normalized(basename(one).replace(/-[^-]+\.dist-info$/, "")) === wanted,
  );
  if (info === undefined) throw new Failure(`pip has installed no package named ${spec}`);
  const [, version = "0.0.0"] = /-([^-]+)\.dist-info$/.exec(info) ?? [];
  const [name, target] = entryPoint(readEntryPoints(join(folder, info)), script ?? wanted, spec);
  const [module = "", attribute = "main"] = target.split(":");
  // Its scripts name the Python of this machine.
  for (const path of ["bin", ...globSync("**/__pycache__", { cwd: folder })]) rmSync(join(folder, path), { recursive: true, force: true });
  // Compiled now, and valid whatever time the files get when they are unpacked: otherwise each start would compile them. Packages may
  // have files that are templates or for another Python; those stay as they are.
  const compile = ["-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash", folder];
  await runProgram("python3", compile, { what: `compiling ${spec}`, cwd: folder, ...run }).catch(() => undefined);
  const start = `import sys; sys.argv[0] = ${JSON.stringify(name)}; from ${module} import ${attribute.split(".")[0]}; sys.exit(${attribute}())`;
  return { name: wanted, version, python, command: ["python3", "-c", start, ...args] };
}

function readEntryPoints(info: string): Map<string, string> {
  const [file] = globSync("entry_points.txt", { cwd: info });
  if (file === undefined) return new Map();
  const scripts = /^\[console_scripts\]$([\s\S]*?)(?=^\[|$(?![\s\S]))/m.exec(readFileSync(join(info, file), "utf8"))?.[1] ?? "";
  return new Map([...scripts.matchAll(/^\s*([^\s=]+)\s*=\s*([\w.]+:[\w.]+)/gm)].map(([, name = "", target = ""]) => [name, target]));
}

function entryPoint(scripts: ReadonlyMap<string, string>, wanted: string, spec: string): [string, string] {
  const names = [...scripts.keys()];
  const name = names.length === 1 ? names[0] : names.find((one) => normalized(one) === normalized(wanted));
  const target = name === undefined ? undefined : scripts.get(name);
  if (name !== undefined && target !== undefined) return [name, target];
  if (names.length === 0)
    throw new Failure(`the package ${spec} has no program`, { hint: "Is it an MCP server that is started with uvx?" });
  throw new Failure(`the package ${spec} has the programs ${names.join(", ")}; name one`, {
    exit: "usage",
    hint: `For example: uvx --from ${spec} ${names[0]}`,
  });
}

/** Names of PyPI: `_`, `-` and `.` are the same. */
function normalized(name: string): string {
  return name.toLowerCase().replace(/[-_.]+/g, "-");
}
