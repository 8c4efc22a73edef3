import { mkdirSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { formatRef, isPlatformError, splitRef } from "@aenv/contract";
import type { Command } from "commander";
import { openArchive } from "../bundle/archive.ts";
import type { TarEntry } from "../bundle/tar.ts";
import { unpackInto } from "../bundle/unpack-into.ts";
import { examples } from "../options/examples.ts";
import { refArgument } from "../options/ref.ts";
import { addPlatformOptions, callServer, openPlatform, type Platform, type PlatformOptions, withServerHint } from "../platform/platform.ts";
import { isEmptyOrMissing } from "../scaffold/project-files.ts";
import { Failure } from "../terminal/failure.ts";
import { createPrinter } from "../terminal/printer.ts";
import { progressBar } from "../terminal/progress-bar.ts";
import { bytesText, countText } from "../terminal/table.ts";
import type { Terminal } from "../terminal/terminal.ts";

interface Options extends PlatformOptions {
  readonly version?: string;
  readonly workDir: string;
  readonly force?: boolean;
  readonly json?: boolean;
}

export function define(command: Command, terminal: Terminal): void {
  command
    .description("Downloads a published environment, checks it, and unpacks it into a folder of its name, where it can be run.")
    .argument("<name>", "name or name@version; the newest version if none is given")
    .option("-v, --version <version>", "the version, instead of name@version")
    .option("-w, --work-dir <folder>", "the folder in which the environment's folder is created", ".")
    .option("--force", "write into a folder that is not empty; other files stay")
    .option("--json", "print JSON");
  addPlatformOptions(command)
    .addHelpText("after", examples("aenv pull my-env", "aenv pull my-env@1.0.0 --work-dir /srv/environments", "aenv pull my-env --force"))
    .action((name: string, options: Options) => pull(name, options, terminal));
}

async function pull(name: string, options: Options, terminal: Terminal): Promise<void> {
  const printer = createPrinter(terminal, options.json === true);
  const ref = refArgument(name, options.version);
  const platform = openPlatform(options, terminal);
  const folder = join(resolve(terminal.cwd, options.workDir), splitRef(ref).name);
  if (!isEmptyOrMissing(folder) && !options.force) {
    throw new Failure(`the folder ${folder} is not empty`, { hint: "Choose another with --work-dir, or write into it with --force." });
  }
  const record = await callServer(terminal, `Looking for ${ref}`, () => platform.hub.get(ref));
  const found = formatRef(record);
  const bytes = await download(platform, found, terminal);
  const { entries, digest } = await open(bytes, found);
  if (typeof record.bundle_digest === "string" && record.bundle_digest !== digest) {
    throw new Failure(`the download of ${found} is damaged: its digest is ${digest}, but the hub has ${record.bundle_digest}`, {
      code: "bundle.damaged",
      hint: "Try again. If it fails again, a proxy may be changing the content.",
    });
  }
  mkdirSync(folder, { recursive: true });
  unpackInto(folder, entries);

  printer.json({ name: record.name, version: record.version, digest, folder, files: entries.map(({ path }) => path) });
  const { colors } = printer.output;
  const near = relative(terminal.cwd, folder);
  const path = near.startsWith("..") ? folder : near;
  printer.print(
    `${colors.green("✔")} ${colors.bold(found)} is in ${colors.cyan(path)} ${colors.dim(`${countText(entries.length, "file")}, ${bytesText(bytes.length)}`)}`,
  );
  printer.print();
  printer.print(`  ${colors.dim("Run it:")} node ${join(path, "main.js")} --port 8081`);
}

async function download({ hub }: Platform, ref: string, terminal: Terminal): Promise<Uint8Array> {
  const bar = progressBar(terminal, `Downloading ${ref}`, null);
  try {
    return (await hub.downloadBundle(ref, { onProgress: (count) => bar.at(count) })).bytes;
  } catch (error) {
    throw withServerHint(error);
  } finally {
    bar.end();
  }
}

/** Refuses damaged archives, links, and paths outside the folder. */
async function open(bytes: Uint8Array, ref: string): Promise<{ entries: TarEntry[]; digest: string }> {
  try {
    const { entries, digest } = await openArchive(bytes);
    return { entries, digest: `sha256:${digest}` };
  } catch (error) {
    if (!isPlatformError(error)) throw error;
    throw new Failure(`${ref} cannot be unpacked: ${error.message}`, {
      code: error.code,
      hint: "The bundle was not pushed by this command, or was changed in transit.",
      cause: error,
    });
  }
}
