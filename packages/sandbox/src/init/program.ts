import { execFile } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { constants } from "node:fs";
import { access, chmod, copyFile, mkdir, readdir, readFile, rename, rm } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { PlatformError } from "@aenv/contract";
import type { Architecture } from "../engine/architecture.ts";

export interface InitProgramOptions {
  /** Folder with the programs of the published package: `init-x64` and `init-arm64`. */
  readonly packaged?: string;
  /** Folder with the Go sources, in a checkout. */
  readonly sources?: string;
  /** What is built or copied is kept here. */
  readonly cacheFolder?: string;
}

const GO_ARCHITECTURES = { x64: "amd64", arm64: "arm64" } as const satisfies Record<Architecture, string>;
const BUILD_TIMEOUT_MS = 5 * 60_000;

// In the published package, this file is part of a chunk in `lib`.
const isCheckout = import.meta.url.endsWith(".ts");
const ownFolder = fileURLToPath(new URL(isCheckout ? "../../init" : "../init", import.meta.url));

const running = new Map<string, Promise<string>>();

/** The path of an executable init for this architecture: the one of the published package, or built with Go in a checkout. */
export async function initProgram(architecture: Architecture, options: InitProgramOptions = {}): Promise<string> {
  const { cacheFolder = join(homedir(), ".cache/aenv") } = options;
  const packaged = join(options.packaged ?? ownFolder, `init-${architecture}`);
  if (await can(packaged, constants.X_OK)) return packaged;
  // Some package managers and archives lose the permission to execute.
  if (await can(packaged, constants.R_OK)) {
    const digest = digestOf([await readFile(packaged)]);
    return once(join(cacheFolder, `init-${digest}`, `init-${architecture}`), (part) => copyFile(packaged, part));
  }
  const sources = options.sources ?? ownFolder;
  const files = (await readdir(sources).catch(() => [])).filter((name) => /^go\.(mod|sum)$|(?<!_test)\.go$/.test(name)).sort();
  if (files.length === 0)
    throw new PlatformError("sandbox.unsupported", `there is no init for ${architecture} in ${ownFolder}: install the package again`);
  const digest = digestOf(await Promise.all(files.map((name) => readFile(join(sources, name)))));
  return once(join(cacheFolder, `init-${digest}`, `init-${architecture}`), (part) => build(architecture, sources, part));
}

/** Creates the file if it is not there. It appears by a rename, so that other processes see all of it or nothing. */
function once(file: string, create: (part: string) => Promise<void>): Promise<string> {
  const known = running.get(file);
  if (known !== undefined) return known;
  const made = (async () => {
    if (await can(file, constants.X_OK)) return file;
    await mkdir(join(file, ".."), { recursive: true });
    const part = `${file}.${randomBytes(6).toString("hex")}`;
    try {
      await create(part);
      await chmod(part, 0o755);
      await rename(part, file);
    } finally {
      await rm(part, { force: true });
    }
    return file;
  })().finally(() => running.delete(file));
  running.set(file, made);
  return made;
}

async function build(architecture: Architecture, sources: string, output: string): Promise<void> {
  // `env` sets the variables, because this package does not read those of its process.
  const variables = ["CGO_ENABLED=0", "GOOS=linux", `GOARCH=${GO_ARCHITECTURES[architecture]}`, "GOWORK=off"];
  const command = ["go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", output, "."];
  try {
    await promisify(execFile)("env", [...variables, ...command], { cwd: sources, timeout: BUILD_TIMEOUT_MS });
  } catch (cause) {
    const { code, stderr = "" } = cause as { code?: unknown; stderr?: string };
    // The exit code of `env` for a program that does not exist.
    if (code === 127)
      throw new PlatformError(
        "sandbox.unsupported",
        "the init of sandboxes is not built: install Go 1.25 or newer (https://go.dev/doc/install), or use the published package",
        { cause },
      );
    throw new PlatformError(
      "sandbox.unsupported",
      `the init of sandboxes could not be built in ${sources}: ${stderr.trim() || (cause as Error).message}`,
      { cause },
    );
  }
}

function digestOf(contents: readonly Buffer[]): string {
  const hash = createHash("sha256");
  for (const content of contents) hash.update(`${content.length}\n`).update(content);
  return hash.digest("hex").slice(0, 16);
}

async function can(path: string, mode: number): Promise<boolean> {
  return access(path, mode).then(
    () => true,
    () => false,
  );
}
