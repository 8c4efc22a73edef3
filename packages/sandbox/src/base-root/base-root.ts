import { createHash, randomBytes } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import type { TarEntry } from "@aenv/contract";
import { PlatformError, TAR_END, tarEntryHeader, tarPaddingBytes } from "@aenv/contract";
import { once } from "../host/once.ts";
import type { LayerId, LayerStore } from "../images/layers.ts";
import { unpackStream } from "../images/unpack/archive.ts";
import { type RootFile, rootFiles } from "./files.ts";

export interface BaseRootOptions {
  /** The computed digest is kept here, because reading all files takes a moment. */
  readonly folder: string;
  /** The runner as one file of JavaScript. */
  readonly runner: string;
  /** The Node of sandboxes; by default the one of this process. */
  readonly nodePath?: string;
}

/**
 * The root file system of sandboxes without an image, made of files of this machine. It exists only as a list: the archive is
 * written when an engine needs it.
 */
export interface BaseRoot {
  /** `sha256:…` of the archive: its id as a layer, and the same for the same files. */
  readonly digest: LayerId;
  /** An uncompressed tar archive, which `docker import` accepts too. */
  archive(): Readable;
  /** Adds it to the store, if it is not there. */
  addTo(layers: LayerStore, signal: AbortSignal): Promise<void>;
}

export async function openBaseRoot({ folder, runner, nodePath = process.execPath }: BaseRootOptions): Promise<BaseRoot> {
  if (process.platform !== "linux")
    throw new PlatformError("sandbox.unsupported", `a base root is made only on Linux, not on ${process.platform}: name a base image`);
  const files = await rootFiles({ nodePath, runner, nodeModules: separateModules() });
  const archive = () => Readable.from(tarOf(files), { objectMode: false });
  const digest = await knownDigest(folder, files, archive);
  return {
    digest,
    archive,
    addTo: async (layers, signal) => {
      await layers.add(digest, (target) => unpackStream(archive(), target, { diffId: digest, signal }));
    },
  };
}

/** Opens the files of sandboxes without an image at the first call, and again after a failure. */
export function openBaseOnce(engine: string, home: string, runnerCode: (() => Promise<string>) | undefined): () => Promise<BaseRoot> {
  if (runnerCode === undefined) throw new PlatformError("internal", `the engine ${engine} needs the code of the runner`);
  return once(async () => openBaseRoot({ folder: join(home, "base-root"), runner: await runnerCode() }));
}

/** Debian's Node has some of its modules in /usr/share. */
function separateModules(): readonly string[] {
  const { node_builtin_shareable_builtins: paths } = process.config.variables as { node_builtin_shareable_builtins?: readonly string[] };
  return (paths ?? []).filter((path) => path.startsWith("/"));
}

async function* tarOf(files: readonly RootFile[]): AsyncGenerator<Uint8Array> {
  for (const file of files) {
    if (file.type !== "file") {
      yield tarEntryHeader(entryOf(file, 0));
      continue;
    }
    const size = "text" in file.content ? Buffer.byteLength(file.content.text) : (await stat(file.content.source)).size;
    yield tarEntryHeader(entryOf(file, size));
    if ("text" in file.content) yield Buffer.from(file.content.text);
    else yield* createReadStream(file.content.source, { end: Math.max(0, size - 1), highWaterMark: 2 ** 20 }) as AsyncIterable<Buffer>;
    yield tarPaddingBytes(size);
  }
  yield TAR_END;
}

/** Owners and times are fixed, so that the same files have the same digest on every machine. */
function entryOf(file: RootFile, size: number): TarEntry {
  return {
    path: file.path === "/" ? "./" : `.${file.path}${file.type === "directory" ? "/" : ""}`,
    type: file.type,
    linkPath: file.type === "symlink" ? file.target : "",
    mode: file.type === "symlink" ? 0o777 : file.mode,
    uid: 0,
    gid: 0,
    size,
    mtimeSeconds: 0,
    major: 0,
    minor: 0,
    attributes: {},
  };
}

/** The digest that was computed for these files, unless one of them has changed since. */
async function knownDigest(folder: string, files: readonly RootFile[], archive: () => Readable): Promise<LayerId> {
  const record = join(folder, `${await stateOf(files)}.json`);
  const known = await readFile(record, "utf8").catch(() => null);
  if (known !== null) return (JSON.parse(known) as { digest: LayerId }).digest;
  const hash = createHash("sha256");
  for await (const chunk of archive()) hash.update(chunk as Buffer);
  const digest = `sha256:${hash.digest("hex")}`;
  await mkdir(folder, { recursive: true });
  const part = join(folder, `.part-${randomBytes(6).toString("hex")}`);
  try {
    await writeFile(part, JSON.stringify({ digest }));
    await rename(part, record);
  } finally {
    await rm(part, { force: true });
  }
  return digest;
}

async function stateOf(files: readonly RootFile[]): Promise<string> {
  const hash = createHash("sha256");
  for (const file of files) {
    hash.update(`${JSON.stringify(file)}\n`);
    if (file.type !== "file" || "text" in file.content) continue;
    const { size, mtimeMs, ino, dev } = await stat(file.content.source);
    hash.update(`${size} ${mtimeMs} ${dev} ${ino}\n`);
  }
  return hash.digest("hex").slice(0, 32);
}
