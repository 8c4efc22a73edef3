import { cpSync, existsSync, rmSync } from "node:fs";
import { relative, resolve } from "node:path";
import { isPlatformError, parseName } from "@aenv/contract";
import type { McpOffer } from "@aenv/kit";
import { bundleProject } from "../bundle/bundle.ts";
import { LOAD_TIMEOUT_MS } from "../project/load-errors.ts";
import { assertVersion, readProject } from "../project/project.ts";
import { isMachinesNodeTooOld } from "../scaffold/machine-node.ts";
import { ownTarball } from "../scaffold/own-tarball.ts";
import { isEmptyOrMissing, packageFiles, writeFiles } from "../scaffold/project-files.ts";
import { Failure } from "../terminal/failure.ts";
import type { Printer } from "../terminal/printer.ts";
import { withSpinner } from "../terminal/spinner.ts";
import type { Terminal } from "../terminal/terminal.ts";

/** Where a project is written. */
export interface MountFolder {
  readonly name: string;
  readonly path: string;
  printNext(printer: Printer): void;
}

const MAX_NAME = 63;

export function openFolder(
  options: { readonly name: string; readonly version: string; readonly workDir: string; readonly force?: boolean },
  cwd: string,
): MountFolder {
  assertVersion(options.version);
  const name = parseName(options.name);
  const path = resolve(cwd, options.workDir, name);
  if (!isEmptyOrMissing(path) && options.force !== true)
    throw new Failure(`the folder ${path} is not empty`, {
      hint: "Choose another name with --name, another folder with --work-dir, or write into it with --force.",
    });
  const near = relative(cwd, path);
  const shown = near === "" || near.startsWith("../..") ? path : near;
  const steps = [`cd ${shown} && npm install`, "npx aenvironment test", "npx aenvironment run"];
  return {
    name,
    path,
    printNext: (printer) => {
      printer.print("\nNext: add tasks and rewards to src/index.ts.");
      for (const step of steps) printer.print(`  ${printer.output.colors.cyan(step)}`);
    },
  };
}

/** A valid name from that of a package, a server or a host. */
export function nameFrom(text: string): string {
  const plain = text
    .toLowerCase()
    .replace(/^@[^/]*\//, "")
    .replace(/[^a-z0-9-]+/g, "-")
    .replace(/^[^a-z]+|-+$/g, "")
    .slice(0, MAX_NAME)
    .replace(/-+$/, "");
  return plain === "" ? "mounted" : plain;
}

/** Environments have names of tools that every client accepts. */
export function assertMountable({ pinned }: McpOffer): void {
  const odd = pinned.tools.find(({ name }) => !/^[A-Za-z0-9_.-]{1,128}$/.test(name));
  if (odd !== undefined)
    throw new Failure(`the tool '${odd.name}' cannot be a tool of an environment: a name has 1 to 128 letters, digits, '_', '-' or '.'`);
}

/** Writes the project, with what was prepared in `from`, and checks that it loads as it would on a server. If that fails, nothing is left. */
export async function finishMount(
  { name, path }: MountFolder,
  files: Map<string, string>,
  from: string,
  { version, data }: { readonly version: string; readonly data: readonly string[] },
  terminal: Terminal,
): Promise<void> {
  const wasMissing = !existsSync(path);
  const tarball = await ownTarball();
  const all = packageFiles({ name, version, bringsNode: isMachinesNodeTooOld(terminal.env.PATH), tarball });
  // Installed packages of the server are part of the project.
  if (data.some((one) => one.endsWith("node_modules"))) all.set(".gitignore", `${String(all.get(".gitignore"))}!vendor/node_modules/\n`);
  try {
    writeFiles(path, new Map([...all, ...files]));
    if (existsSync(from)) cpSync(from, path, { recursive: true });
    await withSpinner(terminal, "Checking that it loads", () =>
      bundleProject(readProject(path, terminal.cwd), { timeoutMs: LOAD_TIMEOUT_MS, onOutput: () => undefined }),
    );
  } catch (error) {
    if (wasMissing) rmSync(path, { recursive: true, force: true });
    throw isPlatformError(error) ? new Failure(error.message, { cause: error }) : error;
  }
}
