import {
  type ErrorCode,
  type FileContent,
  fileAnswer,
  fileListAnswer,
  fileRoutes,
  parseBoundedJson,
  ReadLimitExceeded,
  type Route,
  readBoundedBytes,
  type SandboxFile,
  SseDecoder,
} from "@aenv/contract";
import type { z } from "zod";
import { EnvironmentError, ValidationError } from "../errors/errors.ts";
import type { RetryRule } from "../errors/retry.ts";
import { MAX_ANSWER_BYTES } from "../http/http.ts";
import { readAnswer } from "../http/read-answer.ts";
import { requestTo, type StreamCall } from "../platform/control-client.ts";
import type { SandboxTarget } from "./target.ts";

export interface SandboxFileChange {
  /** `overflow`: changes were lost, list again. */
  readonly event: "create" | "modify" | "remove" | "rename_from" | "rename_to" | "overflow";
  /** Relative to the watched folder. */
  readonly path: string;
}

const MAX_READ_BYTES = 512 * 1024 ** 2;

interface Options {
  readonly signal?: AbortSignal;
}

/** The files of a sandbox. A relative path begins at the sandbox's working directory. */
export class SandboxFiles {
  readonly #open: (signal?: AbortSignal) => Promise<SandboxTarget>;

  constructor(open: (signal?: AbortSignal) => Promise<SandboxTarget>) {
    this.#open = open;
  }

  /** The bytes of a file of at most 512 MiB, or of a part of a larger one. */
  async read(path: string, options: Options & { readonly offset?: number; readonly length?: number } = {}): Promise<Uint8Array> {
    const content = await this.stream(path, options);
    try {
      return await readBoundedBytes(content, { maxBytes: MAX_READ_BYTES });
    } catch (error) {
      if (!(error instanceof ReadLimitExceeded)) throw error;
      const message = `could not read '${path}' as a whole: ${error.message}; read parts of it, or use files.stream`;
      throw new EnvironmentError(message, { code: "sandbox.answer_too_large", cause: error });
    }
  }

  async readText(path: string, options: Options = {}): Promise<string> {
    return new TextDecoder().decode(await this.read(path, options));
  }

  /** The bytes of a file while they arrive. */
  async stream(
    path: string,
    { offset, length, signal }: Options & { readonly offset?: number; readonly length?: number } = {},
  ): Promise<AsyncIterable<Uint8Array>> {
    if (length === 0) return nothing();
    const isPart = offset !== undefined || length !== undefined;
    const from = offset ?? 0;
    const range = `bytes=${from}-${length === undefined ? "" : from + length - 1}`;
    const answer = await this.#stream(fileRoutes.readFile, `read '${path}'`, { path }, signal, isPart ? { headers: { range } } : {});
    return answer.chunks();
  }

  /** Replaces a file at once, or appends to it. Folders above it are created. An existing file keeps its mode and owner. */
  async write(
    path: string,
    content: FileContent,
    { signal, mode, append, user }: Options & { readonly mode?: number; readonly append?: boolean; readonly user?: string } = {},
  ): Promise<void> {
    const query = { path, mkdirs: true, append, user, mode: mode === undefined ? undefined : octal(mode) };
    await this.#upload(fileRoutes.writeFile, `write '${path}'`, query, content, signal);
  }

  /** The entries of a folder in the order of names; links are not followed. Throws if there are more than `limit`. */
  async list(
    path = ".",
    { signal, recursive, limit = 10_000 }: Options & { readonly recursive?: boolean; readonly limit?: number } = {},
  ): Promise<SandboxFile[]> {
    const data = await this.#send(fileRoutes.listFiles, `list '${path}'`, { path, recursive, limit }, signal);
    const { files, truncated } = readAnswer(fileListAnswer, data, `the list of '${path}'`);
    if (truncated) throw new ValidationError(`'${path}' has more than ${limit} entries; raise the limit, or list its folders`);
    return files.map(toFile);
  }

  /** Describes a file or folder; of a link the link itself, unless `follow`. */
  async stat(path: string, { signal, follow }: Options & { readonly follow?: boolean } = {}): Promise<SandboxFile> {
    const data = await this.#send(fileRoutes.statFile, `describe '${path}'`, { path, follow }, signal);
    return toFile(readAnswer(fileAnswer, data, `the description of '${path}'`));
  }

  /** Creates a folder and those above it. An existing one is no error. */
  async mkdir(path: string, { signal, mode }: Options & { readonly mode?: number } = {}): Promise<void> {
    const body = { path, parents: true, ...(mode !== undefined && { mode: octal(mode) }) };
    await this.#send(fileRoutes.makeFolder, `create the folder '${path}'`, {}, signal, body);
  }

  /** Removes a file or an empty folder, or with `recursive` all that is in it. */
  async remove(path: string, { signal, recursive }: Options & { readonly recursive?: boolean } = {}): Promise<void> {
    await this.#send(fileRoutes.removeFile, `remove '${path}'`, { path, recursive }, signal);
  }

  async rename(path: string, to: string, { signal }: Options = {}): Promise<void> {
    await this.#send(fileRoutes.renameFile, `rename '${path}'`, {}, signal, { path, to });
  }

  /** The changes in a folder from now on: the promise resolves when they are recorded. Leave the loop over them to stop. */
  async watch(
    path: string,
    { signal, recursive }: Options & { readonly recursive?: boolean } = {},
  ): Promise<AsyncGenerator<SandboxFileChange, void, undefined>> {
    const query = { path, recursive };
    const answer = await this.#stream(fileRoutes.watchFiles, `watch '${path}'`, query, signal, { idleTimeoutMs: null });
    const changes = changesIn(answer.chunks());
    // The first event says that changes are recorded.
    await changes.next();
    return changes as AsyncGenerator<SandboxFileChange, void, undefined>;
  }

  /** Unpacks a tar archive into a folder, which is created. */
  async upload(
    path: string,
    archive: Uint8Array | AsyncIterable<Uint8Array>,
    { signal, user }: Options & { readonly user?: string } = {},
  ): Promise<void> {
    await this.#upload(fileRoutes.unpackFiles, `unpack an archive into '${path}'`, { path, user }, archive, signal);
  }

  /** A folder or a file as a tar archive. */
  async download(path: string, { signal }: Options = {}): Promise<AsyncIterable<Uint8Array>> {
    return (await this.#stream(fileRoutes.packFiles, `read the folder '${path}'`, { path }, signal)).chunks();
  }

  async #send(route: Route, doing: string, query: object, signal: AbortSignal | undefined, body?: unknown): Promise<unknown> {
    const { control, call } = await this.#call(route, doing, query, signal);
    return control.send({ ...call, ...(body !== undefined && { body }) });
  }

  async #stream(route: Route, doing: string, query: object, signal: AbortSignal | undefined, more: Partial<StreamCall> = {}) {
    const { control, call } = await this.#call(route, doing, query, signal);
    return control.open({ ...call, ...more });
  }

  async #upload(route: Route, doing: string, query: object, content: FileContent, signal: AbortSignal | undefined): Promise<void> {
    const { control, call } = await this.#call(route, doing, query, signal);
    const headers = { "content-type": "application/octet-stream" };
    await control.upload({ ...call, rule: "once", headers, stream: () => bytesOf(content) });
  }

  async #call(route: Route, doing: string, query: object, signal: AbortSignal | undefined) {
    const { id, control } = await this.#open(signal);
    const rule: RetryRule = route.method === "GET" ? "idempotent" : "once";
    const notFound: ErrorCode = "file.not_found";
    const call = { ...requestTo(route, { id }, { ...query }), doing: `${doing} in instance '${id}'`, rule, notFound, signal };
    return { control, call };
  }
}

function toFile({ modified_at: modifiedAt, mode, target, ...file }: z.infer<typeof fileAnswer>): SandboxFile {
  return { ...file, mode: Number.parseInt(mode, 8), modifiedAt, ...(target !== undefined && { target }) };
}

async function* changesIn(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<SandboxFileChange | null, void, undefined> {
  const decoder = new SseDecoder(MAX_ANSWER_BYTES);
  for await (const chunk of chunks) {
    for (const { event, data } of decoder.push(chunk)) yield event === "ready" ? null : (parseBoundedJson(data) as SandboxFileChange);
  }
}

function octal(mode: number): string {
  return `0${mode.toString(8).padStart(3, "0")}`;
}

async function* bytesOf(content: FileContent): AsyncGenerator<Uint8Array> {
  if (typeof content === "string") yield new TextEncoder().encode(content);
  else if (content instanceof Uint8Array) yield content;
  else yield* content;
}

async function* nothing(): AsyncGenerator<Uint8Array> {}
