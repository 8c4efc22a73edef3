import {
  type ExactFile,
  encodePath,
  type FileContent,
  type LinkParameters,
  type LinkPath,
  PlatformError,
  ReadLimitExceeded,
  readBoundedBytes,
  type SandboxFile,
} from "@aenv/contract";
import type { TaskFiles } from "../definition/sandbox.ts";
import { bytesOf, type LinkContent } from "../link/link.ts";
import type { SandboxTarget } from "./target.ts";

type FilePath = Extract<LinkPath, `/files/${string}`>;
type Options = { readonly signal?: AbortSignal };
type ListOptions = Options & { readonly recursive?: boolean; readonly limit?: number };

const LIST_LIMIT = 10_000;
const MAX_READ_BYTES = 512 * 1_024 ** 2;
/** Characters of paths that are sent at once. */
const BATCH_LENGTH = 64 * 1_024;

/** The files of a sandbox, through the platform. */
export class LinkedFiles implements TaskFiles {
  readonly #target: SandboxTarget;

  constructor(target: SandboxTarget) {
    this.#target = target;
  }

  async read(path: string, options: Options & { readonly offset?: number; readonly length?: number } = {}): Promise<Uint8Array> {
    try {
      return await readBoundedBytes(await this.stream(path, options), { maxBytes: MAX_READ_BYTES });
    } catch (error) {
      if (!(error instanceof ReadLimitExceeded)) throw error;
      const message = `'${path}' is not read as a whole: ${error.message}; read parts of it, or use files.stream`;
      throw new PlatformError("sandbox.answer_too_large", message, { cause: error });
    }
  }

  async readText(path: string, options: Options = {}): Promise<string> {
    return Buffer.from(await this.read(path, options)).toString("utf8");
  }

  async stream(
    path: string,
    { signal, ...part }: Options & { readonly offset?: number; readonly length?: number } = {},
  ): Promise<AsyncIterable<Uint8Array>> {
    return this.#bytes("/files/read", { path, ...part }, signal);
  }

  async write(
    path: string,
    content: FileContent,
    { signal, ...options }: Options & { readonly mode?: number; readonly append?: boolean; readonly user?: string } = {},
  ): Promise<void> {
    await this.#call("/files/write", { path, ...options }, signal, typeof content === "string" ? Buffer.from(content) : content);
  }

  async list(path = ".", options: ListOptions = {}): Promise<SandboxFile[]> {
    return this.#list<SandboxFile>(path, options, {});
  }

  async listExactly(path: string, options: ListOptions = {}): Promise<ExactFile[]> {
    return this.#list<ExactFile>(path, options, { exact: true });
  }

  async stat(path: string, { signal, follow }: Options & { readonly follow?: boolean } = {}): Promise<SandboxFile> {
    return (await this.#call("/files/stat", { path, ...(follow !== undefined && { follow }) }, signal)) as SandboxFile;
  }

  async mkdir(path: string, { signal, mode }: Options & { readonly mode?: number } = {}): Promise<void> {
    await this.#call("/files/mkdir", { path, ...(mode !== undefined && { mode }) }, signal);
  }

  async remove(path: string, { signal, recursive }: Options & { readonly recursive?: boolean } = {}): Promise<void> {
    await this.#call("/files/remove", { path, ...(recursive !== undefined && { recursive }) }, signal);
  }

  async rename(path: string, to: string, { signal }: Options = {}): Promise<void> {
    await this.#call("/files/rename", { path, to }, signal);
  }

  async upload(
    path: string,
    archive: Uint8Array | AsyncIterable<Uint8Array>,
    { signal, user }: Options & { readonly user?: string } = {},
  ): Promise<void> {
    await this.#call("/files/upload", { path, ...(user !== undefined && { user }) }, signal, archive);
  }

  async download(path: string, { signal }: Options = {}): Promise<AsyncIterable<Uint8Array>> {
    return this.#bytes("/files/download", { path }, signal);
  }

  async export(paths: Iterable<string>, { signal }: Options = {}): Promise<AsyncIterable<Uint8Array>> {
    return this.#bytes("/files/export", {}, signal, inBatches(paths));
  }

  async import(archive: AsyncIterable<Uint8Array>, { signal }: Options = {}): Promise<void> {
    await this.#call("/files/import", {}, signal, archive);
  }

  async #list<T>(path: string, { signal, recursive, limit = LIST_LIMIT }: ListOptions, more: { readonly exact?: true }): Promise<T[]> {
    const given = { path, limit, ...(recursive !== undefined && { recursive }), ...more };
    const { files, truncated } = (await this.#call("/files/list", given, signal)) as { files: T[]; truncated: boolean };
    if (truncated)
      throw new PlatformError("request.invalid", `'${path}' has more than ${limit} entries; raise the limit, or list its folders`);
    return files;
  }

  async #call<P extends FilePath>(
    path: P,
    parameters: Omit<LinkParameters<P>, "sandbox">,
    signal: AbortSignal | undefined,
    content?: LinkContent,
  ): Promise<unknown> {
    const { link, request } = this.#request(path, parameters, signal);
    return link.call({ ...request, ...(content !== undefined && { content }) });
  }

  async #bytes<P extends FilePath>(
    path: P,
    parameters: Omit<LinkParameters<P>, "sandbox">,
    signal: AbortSignal | undefined,
    content?: LinkContent,
  ): Promise<AsyncIterable<Uint8Array>> {
    const { link, request } = this.#request(path, parameters, signal);
    return bytesOf(await link.request({ ...request, ...(content !== undefined && { content }) }), request.signal);
  }

  #request<P extends FilePath>(path: P, parameters: Omit<LinkParameters<P>, "sandbox">, own: AbortSignal | undefined) {
    const { link, instanceId, id } = this.#target.resolve();
    const signal = this.#target.signalWith(own);
    return { link, request: { path, instanceId, parameters: { ...parameters, sandbox: id } as LinkParameters<P>, signal } };
  }
}

/** Each path with a zero byte behind it, many in one piece. */
async function* inBatches(paths: Iterable<string>): AsyncGenerator<Uint8Array> {
  let batch = "";
  for (const path of paths) {
    batch += `${path}\0`;
    if (batch.length < BATCH_LENGTH) continue;
    yield encodePath(batch);
    batch = "";
  }
  yield encodePath(batch);
}
