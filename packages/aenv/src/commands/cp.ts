import { createReadStream, createWriteStream } from "node:fs";
import { chmod, lstat, mkdir, readdir, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join, posix, resolve } from "node:path";
import { pipeline } from "node:stream/promises";
import { isPlatformError } from "@aenv/contract";
import { InstanceSandbox, type SandboxFiles } from "@aenv/sdk";
import type { Command } from "commander";
import { examples } from "../options/examples.ts";
import { addPlatformOptions, openPlatform, type PlatformOptions, withServerHint } from "../platform/platform.ts";
import { Failure } from "../terminal/failure.ts";
import { createPrinter } from "../terminal/printer.ts";
import { progressBar } from "../terminal/progress-bar.ts";
import { bytesText, countText } from "../terminal/table.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { warn } from "../terminal/warning.ts";

interface Options extends PlatformOptions {
  readonly json?: boolean;
}

/** One file or folder to copy. */
interface Item {
  /** Relative to what is copied; empty for itself. */
  readonly path: string;
  readonly isFolder: boolean;
  readonly size: number;
  readonly mode: number;
}

/** One side of a copy: this machine, or a sandbox. */
interface Side {
  readonly shown: string;
  /** What is at a path: null if nothing. */
  find(path: string): Promise<Item | null>;
  /** All that is in a folder, folders before their contents. `skip` is told about what cannot be copied. */
  list(path: string, skip: (path: string) => void): Promise<Item[]>;
  read(path: string): Promise<AsyncIterable<Uint8Array>>;
  write(path: string, content: AsyncIterable<Uint8Array>, mode: number): Promise<void>;
  mkdir(path: string): Promise<void>;
  join(folder: string, path: string): string;
}

interface Place {
  readonly side: Side;
  readonly path: string;
  readonly name: string;
}

const AT_ONCE = 8;

export function define(command: Command, terminal: Terminal): void {
  command
    .description(
      "Copies a file or a folder between this machine and an instance's sandbox. One of the two is INSTANCE:PATH, or INSTANCE.main:PATH and INSTANCE.second:PATH for one of two containers; a relative PATH begins at the sandbox's working directory. Into a folder that exists, it is copied under its own name. Links are not copied.",
    )
    .argument("<from>", "a local path, or INSTANCE:PATH")
    .argument("<to>", "INSTANCE:PATH, or a local path")
    .option("--json", "print JSON");
  addPlatformOptions(command)
    .addHelpText(
      "after",
      examples("aenv cp ./tests my-env-abc234:tests", "aenv cp my-env-abc234:/tmp/report.html .", "aenv cp answer.txt my-env-abc234:work/"),
    )
    .action((from: string, to: string, options: Options) => copy(from, to, options, terminal));
}

async function copy(fromText: string, toText: string, options: Options, terminal: Terminal): Promise<void> {
  const printer = createPrinter(terminal, options.json === true);
  const { scheduler } = openPlatform(options, terminal);
  const place = (text: string): Place => {
    const { id, path } = splitPlace(text);
    if (id === null) return { side: localSide(terminal.cwd), path, name: basename(resolve(terminal.cwd, path)) };
    const { files } = new InstanceSandbox(async () => ({ id, scheduler, control: scheduler.control }));
    return { side: sandboxSide(id, files), path, name: posix.basename(path) };
  };
  if ((splitPlace(fromText).id === null) === (splitPlace(toText).id === null)) {
    throw new Failure("one of the two must be in a sandbox, and the other on this machine", {
      exit: "usage",
      hint: "Write the one in the sandbox as INSTANCE:PATH, such as: aenv cp notes.txt my-env-abc234:notes.txt",
    });
  }
  const from = place(fromText);
  const to = place(toText);
  let copied: { readonly files: number; readonly bytes: number; readonly path: string };
  try {
    copied = await copyAll(from, to, terminal);
  } catch (error) {
    throw withServerHint(error);
  }
  const { colors } = printer.output;
  printer.json({ from: fromText, to: toText, ...copied });
  printer.print(
    `${colors.green("✔")} ${to.side.shown}${copied.path} ${colors.dim(`${countText(copied.files, "file")}, ${bytesText(copied.bytes)}`)}`,
  );
}

async function copyAll(from: Place, to: Place, terminal: Terminal) {
  const source = await from.side.find(from.path);
  if (source === null) throw new Failure(`there is no ${from.side.shown}${from.path}`, { code: "file.not_found" });
  const target = await to.side.find(to.path);
  const isInto = target?.isFolder === true || /\/$/.test(to.path);
  const path = isInto ? to.side.join(to.path, from.name) : to.path;
  const skip = (skipped: string) => warn(terminal, `not copied, because it is a link or a special file: ${skipped}`);
  const items = source.isFolder ? await from.side.list(from.path, skip) : [source];
  if (source.isFolder) await to.side.mkdir(path);
  const bytes = items.reduce((sum, { size }) => sum + size, 0);
  const bar = progressBar(terminal, `Copying ${from.name}`, bytes);
  let done = 0;
  const counted = async function* (content: AsyncIterable<Uint8Array>) {
    for await (const part of content) {
      done += part.length;
      bar.at(Math.min(done, bytes));
      yield part;
    }
  };
  try {
    for (const { path: inside } of items.filter(({ isFolder }) => isFolder)) await to.side.mkdir(to.side.join(path, inside));
    const files = items.filter(({ isFolder }) => !isFolder);
    const next = files.values();
    const work = async () => {
      for (const { path: inside, mode } of next) {
        const content = await from.side.read(inside === "" ? from.path : from.side.join(from.path, inside));
        await to.side.write(inside === "" ? path : to.side.join(path, inside), counted(content), mode);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    return { files: files.length, bytes: done, path };
  } finally {
    bar.end();
  }
}

/** `INSTANCE:PATH`, where the instance may have `.main` or `.second`, or a local path: one that begins with `.` or `/` is always local. */
function splitPlace(text: string): { readonly id: string | null; readonly path: string } {
  const [, id, path = ""] = /^([\w-]+(?:\.(?:main|second))?):(.*)$/s.exec(text) ?? [];
  return id === undefined ? { id: null, path: text } : { id, path: path === "" ? "." : path };
}

function sandboxSide(id: string, files: SandboxFiles): Side {
  return {
    shown: `${id}:`,
    find: async (path) => {
      try {
        const { type, size, mode } = await files.stat(path, { follow: true });
        return { path: "", isFolder: type === "directory", size, mode };
      } catch (error) {
        if (isPlatformError(error, "file.not_found")) return null;
        throw error;
      }
    },
    list: async (path, skip) => {
      const found = await files.list(path, { recursive: true, limit: 100_000 });
      return found.flatMap(({ path: inside, type, size, mode }): Item[] => {
        // A sandbox must not choose where files of this machine are written.
        const isInside = !posix.isAbsolute(inside) && !inside.split("/").includes("..");
        if (isInside && type === "directory") return [{ path: inside, isFolder: true, size: 0, mode }];
        if (isInside && type === "file") return [{ path: inside, isFolder: false, size, mode }];
        skip(inside);
        return [];
      });
    },
    read: (path) => files.stream(path),
    write: (path, content, mode) => files.write(path, content, { mode }),
    mkdir: (path) => files.mkdir(path),
    join: posix.join,
  };
}

function localSide(cwd: string): Side {
  const at = (path: string) => resolve(cwd, path);
  return {
    shown: "",
    find: async (path) => {
      const found = await stat(at(path)).catch((error: NodeJS.ErrnoException) => {
        if (error.code === "ENOENT") return null;
        throw error;
      });
      return found && { path: "", isFolder: found.isDirectory(), size: found.isDirectory() ? 0 : found.size, mode: found.mode & 0o777 };
    },
    list: async (path, skip) => {
      const items: Item[] = [];
      const walk = async (inside: string): Promise<void> => {
        for (const name of (await readdir(join(at(path), inside))).sort()) {
          const below = posix.join(inside, name);
          const found = await lstat(join(at(path), below));
          if (found.isDirectory()) {
            items.push({ path: below, isFolder: true, size: 0, mode: found.mode & 0o777 });
            await walk(below);
          } else if (found.isFile()) items.push({ path: below, isFolder: false, size: found.size, mode: found.mode & 0o777 });
          else skip(below);
        }
      };
      await walk("");
      return items;
    },
    read: async (path) => createReadStream(at(path)),
    write: async (path, content, mode) => {
      const target = at(path);
      await mkdir(dirname(target), { recursive: true });
      // Renamed into place, so that a link with this name is replaced and not followed.
      const part = `${target}.${process.pid}.part`;
      try {
        await pipeline(content, createWriteStream(part, { flags: "wx" }));
        await chmod(part, mode);
        await rename(part, target);
      } finally {
        await rm(part, { force: true });
      }
    },
    mkdir: async (path) => void (await mkdir(at(path), { recursive: true })),
    join,
  };
}
