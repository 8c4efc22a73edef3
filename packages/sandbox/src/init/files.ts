import type { Readable } from "node:stream";
import { boundedLines, decodePath, PlatformError, readBoundedBytes, type SandboxFile } from "@aenv/contract";
import { IncomingBytes } from "./bytes.ts";
import { type Fields, fieldsOf, numberIn, parseFields, textIn } from "./json.ts";
import type { InitStream, Receiver } from "./stream.ts";

/** A path of the sandbox. With `root`, it is inside of that folder, and no link leads out. Without, it must be absolute. */
export interface Place {
  readonly path: string;
  readonly root?: string;
  /** Ends the request early. */
  readonly abort?: AbortSignal;
}

export interface FileInfo extends Omit<SandboxFile, "modifiedAt"> {
  readonly modifiedMs: number;
}

/** A file of an exact list, whose mode has all its bits. */
export interface ExactFileInfo extends FileInfo {
  /** Nanoseconds that `modifiedMs` leaves out. */
  readonly modifiedNs: number;
  /** When the file, or what is known about it, was last changed. */
  readonly changedMs: number;
  /** Number of a file with several names: the same for all of them. */
  readonly inode?: string;
  /** A digest of its attributes and access control lists; absent without any. */
  readonly attributes?: string;
}

export interface ListOptions {
  readonly recursive?: boolean;
  readonly limit?: number;
  /** Is told the size of each entry while the list is received. */
  readonly onEntry?: (bytes: number) => void;
}

export interface FileList<T> {
  readonly files: readonly T[];
  readonly isTruncated: boolean;
}

/** Limit of a list for which none was given. */
const MAX_ENTRIES = 100_000;

export interface FileChange {
  /** `overflow`: changes were lost, list again. */
  readonly event: "create" | "modify" | "remove" | "rename_from" | "rename_to" | "overflow";
  /** Relative to the watched folder; empty for the folder itself. */
  readonly path: string;
}

export type Bytes = Uint8Array | AsyncIterable<Uint8Array>;

/** Sends a request; an `abort` in the parameters ends it early. With `receive`, data of the init follows the answer. */
export type SendRequest = <T extends Receiver | undefined>(
  name: string,
  parameters: object,
  receive?: (stream: InitStream) => T,
) => { readonly stream: InitStream; readonly receiver: T };

/** The files of a sandbox. */
export class InitFiles {
  readonly #send: SendRequest;

  constructor(send: SendRequest) {
    this.#send = send;
  }

  async stat(options: Place & { readonly follow?: boolean }): Promise<FileInfo> {
    return infoOf(fieldsOf(await this.#send("stat", options).stream.answer));
  }

  /** Opens a file: its information, and its bytes. Destroy `content` to stop early. */
  async open(options: Place & { readonly offset?: number; readonly length?: number }): Promise<{ info: FileInfo; content: Readable }> {
    const { stream, receiver } = this.#send("read", options, incoming);
    return { info: infoOf(fieldsOf(await stream.answer)), content: receiver };
  }

  async read(options: Place & { readonly offset?: number; readonly length?: number }): Promise<Buffer> {
    const { content } = await this.open(options);
    return Buffer.from(await readBoundedBytes(content, { maxBytes: options.length ?? MAX_READ_BYTES }));
  }

  /** Replaces a file at once, or appends to it. An existing file keeps its mode and owner. */
  async write({
    content,
    ...options
  }: Place & {
    readonly content: Bytes;
    readonly mode?: number;
    readonly mkdirs?: boolean;
    readonly append?: boolean;
    readonly user?: string;
  }): Promise<void> {
    await upload(this.#send("write", options).stream, content);
  }

  /** Lists a folder in the order of names. Links are listed, not followed. */
  list(options: Place & ListOptions): Promise<FileList<FileInfo>> {
    return this.#list(options, infoOf);
  }

  /** The same with what two sandboxes are compared by. */
  listExactly(options: Omit<Place, "root"> & ListOptions): Promise<FileList<ExactFileInfo>> {
    return this.#list({ ...options, exact: true }, exactInfoOf);
  }

  async #list<T>(
    { onEntry, ...options }: Place & ListOptions & { readonly exact?: true },
    read: (fields: Fields) => T,
  ): Promise<FileList<T>> {
    const { limit = MAX_ENTRIES } = options;
    const { stream, receiver } = this.#send("list", options, incoming);
    await stream.answer;
    const files: T[] = [];
    for await (const line of boundedLines(receiver, LINE_LIMITS)) {
      // An init that a program of the sandbox has taken over may send any number.
      if (files.length >= limit)
        throw new PlatformError("sandbox.lost", `the sandbox's init sent more than ${limit} entries, the limit of this list`);
      onEntry?.(line.length);
      files.push(read(parseFields(line)));
    }
    return { files, isTruncated: fieldsOf(await stream.summary).truncated === true };
  }

  async mkdir(options: Place & { readonly mode?: number; readonly parents?: boolean }): Promise<void> {
    await this.#send("mkdir", options).stream.answer;
  }

  async remove(options: Place & { readonly recursive?: boolean }): Promise<void> {
    await this.#send("remove", options).stream.answer;
  }

  async rename(options: Place & { readonly to: string }): Promise<void> {
    await this.#send("rename", options).stream.answer;
  }

  /** Resolves when changes are being recorded. Leave the loop over them to stop. */
  async watch(options: Place & { readonly recursive?: boolean }): Promise<AsyncGenerator<FileChange, void, undefined>> {
    const { stream, receiver } = this.#send("watch", options, incoming);
    await stream.answer;
    return changesIn(receiver);
  }

  /** A folder or a file as a tar archive. */
  async pack(options: Place): Promise<Readable> {
    const { stream, receiver } = this.#send("pack", options, incoming);
    await stream.answer;
    return receiver;
  }

  /** Unpacks a tar archive into a folder, and nowhere else. `cache`: a file that keeps the archive for `unpackCached`. */
  async unpack({
    archive,
    ...options
  }: Place & { readonly archive: Bytes; readonly user?: string; readonly cache?: string }): Promise<void> {
    await upload(this.#send("unpack", options).stream, archive);
  }

  /**
   * The files, folders and links with these absolute paths, each of which is followed by a zero byte, as an archive with all that a file system
   * keeps of them. What is not there is left out.
   */
  async export({ paths, ...options }: { readonly paths: Bytes; readonly abort?: AbortSignal }): Promise<Readable> {
    const { stream, receiver } = this.#send("export", options, incoming);
    await stream.answer;
    // While the paths are sent, the archive arrives. If they fail, so does the archive.
    void send(stream, paths);
    return receiver;
  }

  /** Writes such an archive into the root. A device 0:0 in it removes what is at its path. */
  async import({ archive, ...options }: { readonly archive: Bytes; readonly abort?: AbortSignal }): Promise<void> {
    await upload(this.#send("import", options).stream, archive);
  }

  /** Unpacks an archive that was kept. False if it is not there, or not the one with this digest; then the folder may have any content. */
  async unpackCached(options: Place & { readonly cache: string; readonly sha256: string }): Promise<boolean> {
    return fieldsOf(await this.#send("unpack_cached", options).stream.answer).found === true;
  }
}

function incoming(stream: InitStream): IncomingBytes {
  return new IncomingBytes(stream, true);
}

async function upload(stream: InitStream, content: Bytes): Promise<void> {
  await send(stream, content);
  await stream.answer;
}

/** Never rejects: the failure of the stream says why. */
async function send(stream: InitStream, content: Bytes): Promise<void> {
  try {
    for await (const part of content instanceof Uint8Array ? [content] : content) {
      if (stream.isClosed) break; // refused: the answer says why
      await new Promise<void>((resolve) => stream.write(part, () => resolve()));
    }
  } catch (error) {
    stream.reset(error instanceof Error ? error : new Error(String(error)));
  }
  stream.end();
}

async function* changesIn(content: Readable): AsyncGenerator<FileChange, void, undefined> {
  for await (const line of boundedLines(content, LINE_LIMITS)) {
    const fields = parseFields(line);
    yield { event: textIn(fields, "event") as FileChange["event"], path: typeof fields.path === "string" ? fields.path : "" };
  }
}

/** A path has at most 4 KiB, a name in it may be escaped. */
const LINE_LIMITS = { maxLineLength: 64 * 1_024 };
/** Limit of files that the platform reads as a whole, such as those of `/proc`. */
const MAX_READ_BYTES = 16 * 1_024 ** 2;

function infoOf(fields: Fields): FileInfo {
  return {
    path: textIn(fields, "path"),
    type: textIn(fields, "type") as FileInfo["type"],
    size: numberIn(fields, "size"),
    mode: numberIn(fields, "mode"),
    uid: numberIn(fields, "uid"),
    gid: numberIn(fields, "gid"),
    modifiedMs: numberIn(fields, "modified_ms"),
    ...(typeof fields.target === "string" && { target: fields.target }),
  };
}

function exactInfoOf(fields: Fields): ExactFileInfo {
  return {
    ...infoOf(fields),
    ...(typeof fields.path_bytes === "string" && { path: decodePath(Buffer.from(fields.path_bytes, "base64")) }),
    modifiedNs: numberIn(fields, "modified_ns"),
    changedMs: numberIn(fields, "changed_ms"),
    ...(typeof fields.inode === "string" && { inode: fields.inode }),
    ...(typeof fields.attributes === "string" && { attributes: fields.attributes }),
  };
}
