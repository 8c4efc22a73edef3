import { Readable } from "node:stream";
import { PlatformError, readBoundedBytes } from "@aenv/contract";
import type { FileChange, FileInfo } from "@aenv/sandbox";
import type { Caller } from "../access/access.ts";
import type { OpenSandbox } from "../sandboxes/init-connections.ts";
import { answered, fromInit } from "../sandboxes/init-failure.ts";
import { type ByteRange, readRange } from "./byte-range.ts";
import type { SandboxAccess } from "./sandbox-access.ts";

/** Who asks for the files of which instance. */
export interface FileContext {
  readonly id: string;
  readonly caller: Caller;
  readonly signal: AbortSignal;
}

/** A file, or the requested part of it. */
export interface OpenFile {
  readonly info: FileInfo;
  readonly content: Readable;
  readonly offset: number;
  /** Null if it is not known before the end, as for files of `/proc`. */
  readonly length: number | null;
}

/** Files up to this size are read before they are sent. */
const MAX_HELD_BYTES = 2 ** 20;

/** The files in the sandboxes of instances. Nothing is followed out of a sandbox, which its engine ensures. */
export class Files {
  readonly #access: SandboxAccess;

  constructor(access: SandboxAccess) {
    this.#access = access;
  }

  async read(context: FileContext, path: string, range: string | undefined): Promise<OpenFile> {
    return this.#streamed(context, async ({ init, path: resolve }) => {
      const place = { path: resolve(path), abort: context.signal };
      const { size, type } = await init.files.stat({ ...place, follow: true });
      // Files of /proc report no size, but have content.
      const part = type === "file" && size > 0 ? partOf(path, range, size) : null;
      const { info, content } = await init.files.open(part === null ? place : { ...place, ...part });
      if (part === null) return { info, content, offset: 0, length: null };
      if (part.length > MAX_HELD_BYTES) return { info, content: Readable.from(whole(content, part.length, path)), ...part };
      // A program may write to the file meanwhile. A client waits for as many bytes as it was told.
      const bytes = await readBoundedBytes(content, { maxBytes: part.length });
      if (range !== undefined && bytes.length < part.length) throw changed(path);
      const { length } = bytes;
      return { info: { ...info, size: range === undefined ? length : size }, content: Readable.from([bytes]), offset: part.offset, length };
    });
  }

  write(
    context: FileContext,
    path: string,
    content: AsyncIterable<Uint8Array>,
    options: { readonly mode?: number; readonly mkdirs: boolean; readonly append: boolean; readonly user?: string },
  ): Promise<void> {
    return this.#with(context, ({ init, path: resolve }) =>
      init.files.write({ path: resolve(path), content, abort: context.signal, ...options }),
    );
  }

  list(context: FileContext, path: string, options: { readonly recursive: boolean; readonly limit: number }) {
    return this.#with(context, ({ init, path: resolve }) => init.files.list({ path: resolve(path), abort: context.signal, ...options }));
  }

  stat(context: FileContext, path: string, follow: boolean): Promise<FileInfo> {
    return this.#with(context, ({ init, path: resolve }) => init.files.stat({ path: resolve(path), follow }));
  }

  mkdir(context: FileContext, path: string, options: { readonly mode?: number; readonly parents: boolean }): Promise<void> {
    return this.#with(context, ({ init, path: resolve }) => init.files.mkdir({ path: resolve(path), ...options }));
  }

  remove(context: FileContext, path: string, recursive: boolean): Promise<void> {
    return this.#with(context, ({ init, path: resolve }) => init.files.remove({ path: resolve(path), recursive }));
  }

  rename(context: FileContext, path: string, to: string): Promise<void> {
    return this.#with(context, ({ init, path: resolve }) => init.files.rename({ path: resolve(path), to: resolve(to) }));
  }

  /** Resolves when changes are recorded. They end when the context's signal fires. */
  async watch(context: FileContext, path: string, recursive: boolean): Promise<AsyncGenerator<FileChange, void, undefined>> {
    const sandbox = await this.#open(context);
    try {
      const changes = await answered(sandbox.init.files.watch({ path: sandbox.path(path), recursive, abort: context.signal }));
      return untilReleased(changes, sandbox);
    } catch (error) {
      sandbox.release();
      throw error;
    }
  }

  pack(context: FileContext, path: string): Promise<Readable> {
    return this.#streamed(context, async ({ init, path: resolve }) => {
      const content = await init.files.pack({ path: resolve(path), abort: context.signal });
      return { content };
    }).then(({ content }) => content);
  }

  unpack(context: FileContext, path: string, archive: AsyncIterable<Uint8Array>, user: string | undefined): Promise<void> {
    return this.#with(context, ({ init, path: resolve }) =>
      init.files.unpack({ path: resolve(path), archive, abort: context.signal, ...(user !== undefined && { user }) }),
    );
  }

  #open({ id, caller, signal }: FileContext): Promise<OpenSandbox> {
    return this.#access.open(id, caller, signal);
  }

  async #with<T>(context: FileContext, work: (sandbox: OpenSandbox) => Promise<T>): Promise<T> {
    const sandbox = await this.#open(context);
    try {
      return await answered(work(sandbox));
    } finally {
      sandbox.release();
    }
  }

  /** The sandbox is in use until the content has been read. */
  async #streamed<T extends { readonly content: Readable }>(context: FileContext, work: (sandbox: OpenSandbox) => Promise<T>): Promise<T> {
    const sandbox = await this.#open(context);
    try {
      const opened = await answered(work(sandbox));
      opened.content.once("close", sandbox.release);
      return opened;
    } catch (error) {
      sandbox.release();
      throw error;
    }
  }
}

function partOf(path: string, range: string | undefined, size: number): ByteRange {
  const part = readRange(range, size);
  if (part !== null) return part;
  throw new PlatformError("file.out_of_range", `'${path}' has ${size} bytes; it has no part '${range}'`, { details: { size } });
}

/** Throws at the end if there are fewer bytes: the client gets an incomplete response then, and does not wait for the rest. */
async function* whole(content: Readable, length: number, path: string): AsyncGenerator<Buffer, void, undefined> {
  let left = length;
  for await (const part of content as AsyncIterable<Buffer>) {
    left -= part.length;
    yield part;
  }
  if (left > 0) throw changed(path);
}

function changed(path: string): PlatformError {
  return new PlatformError("file.conflict", `'${path}' became shorter while it was read; read it again`);
}

async function* untilReleased(
  changes: AsyncGenerator<FileChange, void, undefined>,
  sandbox: OpenSandbox,
): AsyncGenerator<FileChange, void, undefined> {
  try {
    yield* changes;
  } catch (error) {
    throw fromInit(error);
  } finally {
    sandbox.release();
  }
}
