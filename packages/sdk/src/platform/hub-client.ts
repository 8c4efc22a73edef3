import {
  boundedChunks,
  type EnvironmentConfig,
  type EnvironmentRecord,
  type EnvironmentRef,
  type EnvironmentStatus,
  environment,
  environmentStatuses,
  isObject,
  messageOf,
  parseRef,
  splitRef,
  type VersionRecord,
  type Visibility,
  versionRecord,
} from "@aenv/contract";
import * as z from "zod";
import { ValidationError } from "../errors/errors.ts";
import { withQuery } from "../http/json-client.ts";
import { readAnswer } from "../http/read-answer.ts";
import { ControlClient, type ControlClientOptions, type RequestOptions } from "./control-client.ts";

/** A published config: complete, or for an update the changed parts. */
export type Publication = Partial<
  Pick<EnvironmentConfig, "description" | "tags" | "status" | "codeUrl" | "artifacts" | "buildConfig" | "testConfig" | "deployConfig">
> & { readonly visibility?: Visibility; readonly sharedWith?: readonly string[]; readonly [field: string]: unknown };

/** Filter for environments; a field that is left out matches all. */
export interface EnvironmentFilter {
  readonly limit?: number;
  readonly offset?: number;
  readonly name?: string;
  readonly tag?: string;
  /** Text to find in the name or the description. */
  readonly query?: string;
}

export interface PublishOptions extends RequestOptions {
  /** False: an AEnv hub does not start the environment to verify it. */
  readonly verify?: boolean;
}

export interface TransferOptions extends RequestOptions {
  /** Called with the number of bytes transferred so far. */
  readonly onProgress?: (bytes: number) => void;
  /** The transfer fails when no byte was transferred for this long; 60 s if absent. */
  readonly idleTimeoutMs?: number;
}

/**
 * Finds and publishes environments.
 *
 * @example
 * const hub = new HubClient("http://localhost:8083");
 * if (!(await hub.exists("weather-demo@1.0.0")).exists) await hub.create("weather-demo@1.0.0", config);
 */
export class HubClient {
  readonly #control: ControlClient;

  constructor(hubUrl: string, options: ControlClientOptions = {}) {
    this.#control = new ControlClient(hubUrl, { notFound: "environment.not_found", conflict: "environment.exists" }, options);
  }

  async exists(ref: string, options: RequestOptions = {}): Promise<{ exists: boolean; status: EnvironmentStatus | null }> {
    const data = await this.#send("GET", `${pathOf(ref)}/exists`, `look up environment '${ref}'`, options);
    if (!isObject(data) || typeof data.exists !== "boolean") throw unexpected(ref, data);
    return { exists: data.exists, status: data.exists ? readStatus(data.status ?? 0) : null };
  }

  /** A version. For a name without a version it is the newest, which only an AEnv hub supports. */
  async get(ref: string, options: RequestOptions = {}): Promise<EnvironmentRecord> {
    return readEnvironment(await this.#send("GET", pathOf(withLatest(ref)), `get environment '${ref}'`, options), ref);
  }

  async list(filter: EnvironmentFilter = {}, options: RequestOptions = {}): Promise<EnvironmentRecord[]> {
    const { limit = 100, offset = 0, name, tag, query: q } = filter;
    // With the slash: the original redirects the path without it.
    const data = await this.#send("GET", withQuery("/env/", { limit, offset, name, tag, q }), "list environments", options);
    if (data === null || data === undefined) return [];
    return readAnswer(z.array(environment), data, "the list of environments");
  }

  /** Publishes a version. Throws with the code `environment.exists` if it exists. */
  async create(ref: string, publication: Publication, { verify, ...options }: PublishOptions = {}): Promise<void> {
    const path = withQuery("/env/", { verify });
    await this.#send("POST", path, `publish environment '${ref}'`, options, { ...publication, ...readRef(ref) });
  }

  /** Replaces the given parts of a version that is not yet released. */
  async update(ref: string, publication: Publication, options: RequestOptions = {}): Promise<void> {
    await this.#send("PUT", pathOf(ref), `update environment '${ref}'`, options, { ...publication, ...readRef(ref) });
  }

  async status(ref: string, options: RequestOptions = {}): Promise<EnvironmentStatus> {
    const data = await this.#send("GET", `${pathOf(ref)}/status`, `get the status of '${ref}'`, options);
    if (!isObject(data)) throw unexpected(ref, data);
    return readStatus(data.status);
  }

  /** Makes the version immutable. */
  async release(ref: string, options: RequestOptions = {}): Promise<void> {
    await this.#send("POST", `${pathOf(ref)}/release`, `release environment '${ref}'`, options);
  }

  /** A name's versions, newest first. */
  async versions(name: string, options: RequestOptions = {}): Promise<VersionRecord[]> {
    const data = await this.#send("GET", `/env/${encodeURIComponent(name)}`, `list the versions of '${name}'`, options);
    return readAnswer(z.array(versionRecord), data, `the list of versions of '${name}'`);
  }

  /** Deletes a version. For a name without a version it deletes all versions, or none. Returns the deleted ones. */
  async delete(ref: string, options: RequestOptions = {}): Promise<string[]> {
    const path = ref.includes("@") ? pathOf(ref) : `/env/${encodeURIComponent(ref)}`;
    const data = await this.#send("DELETE", path, `delete environment '${ref}'`, options);
    return Array.isArray(data) ? data.map(String) : [splitRef(ref).version];
  }

  async setVisibility(
    ref: string,
    change: { readonly visibility?: Visibility; readonly sharedWith?: readonly string[] },
    options: RequestOptions = {},
  ): Promise<void> {
    await this.#send("POST", `${pathOf(ref)}/visibility`, `change the visibility of environment '${ref}'`, options, change);
  }

  /** Whether the caller has uploaded this bundle before. */
  async hasBundle(digest: string, options: RequestOptions = {}): Promise<boolean> {
    const data = await this.#send("GET", `/bundle/${encodeURIComponent(digest)}`, `look up bundle ${digest}`, options);
    return isObject(data) && data.exists === true;
  }

  /** Uploads a bundle under its digest, before it is published. */
  async uploadBundle(digest: string, bytes: Uint8Array, { onProgress, ...options }: TransferOptions = {}): Promise<void> {
    await this.#control.upload({
      ...options,
      method: "PUT",
      path: `/bundle/${encodeURIComponent(digest)}`,
      doing: `upload bundle ${digest}`,
      notFound: "route.not_found",
      headers: { "content-type": "application/gzip" },
      stream: () => pieces(bytes, onProgress),
    });
  }

  /** A version's archive and its digest. */
  async downloadBundle(ref: string, { onProgress, ...options }: TransferOptions = {}): Promise<{ digest: string; bytes: Uint8Array }> {
    const answer = await this.#control.open({
      ...options,
      method: "GET",
      path: `${pathOf(ref)}/bundle`,
      doing: `download environment '${ref}'`,
    });
    const parts: Uint8Array[] = [];
    let size = 0;
    for await (const part of boundedChunks(answer.chunks(), { maxBytes: MAX_BUNDLE_BYTES })) {
      parts.push(part);
      size += part.length;
      onProgress?.(size);
    }
    return { digest: answer.header("x-digest") ?? "", bytes: joined(parts, size) };
  }

  #send(method: string, path: string, doing: string, options: RequestOptions, body?: unknown): Promise<unknown> {
    return this.#control.send({ ...options, method, path, doing, body });
  }
}

const PIECE_BYTES = 64 * 1024;
/** Servers accept no larger archives, unless their operators raise the limit. */
const MAX_BUNDLE_BYTES = 1024 ** 3;

/** Small pieces, so that progress can be reported. */
async function* pieces(bytes: Uint8Array, onProgress: TransferOptions["onProgress"]): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
    const piece = bytes.subarray(at, at + PIECE_BYTES);
    yield piece;
    onProgress?.(at + piece.length);
  }
}

function joined(parts: readonly Uint8Array[], size: number): Uint8Array {
  const bytes = new Uint8Array(size);
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

function withLatest(ref: string): string {
  return ref.includes("@") ? ref : `${ref}@latest`;
}

function readRef(ref: string): EnvironmentRef {
  try {
    return parseRef(ref);
  } catch (cause) {
    throw new ValidationError(messageOf(cause), { cause });
  }
}

function pathOf(ref: string): string {
  const { name, version } = readRef(ref);
  return `/env/${encodeURIComponent(name)}/${encodeURIComponent(version)}`;
}

/** Most routes send the status as a number, one sends its name. */
function readStatus(status: unknown): EnvironmentStatus {
  const found = typeof status === "number" ? environmentStatuses[status] : environmentStatuses.find((one) => one === status);
  if (found === undefined) throw new ValidationError(`the hub answered an unknown status: ${JSON.stringify(status)}`);
  return found;
}

function readEnvironment(data: unknown, ref: string): EnvironmentRecord {
  const parsed = environment.safeParse(data);
  if (!parsed.success) throw unexpected(ref, data);
  return parsed.data;
}

function unexpected(ref: string, data: unknown): ValidationError {
  return new ValidationError(`the hub answered for '${ref}' in an unexpected shape: ${(JSON.stringify(data) ?? "nothing").slice(0, 200)}`);
}
