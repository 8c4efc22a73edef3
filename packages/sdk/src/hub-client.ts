import {
  type EnvironmentConfig,
  type EnvironmentRecord,
  type EnvironmentRef,
  type EnvironmentStatus,
  type ErrorCode,
  environment,
  environmentStatuses,
  isObject,
  messageOf,
  parseRef,
} from "@aenv/contract";
import { ControlClient, type ControlClientOptions } from "./control-client.ts";
import { ValidationError } from "./errors.ts";
import type { RequestOptions } from "./scheduler-client.ts";

/** What is published: an environment's config, in whole or, for an update, in part. */
export type Publication = Partial<
  Pick<EnvironmentConfig, "description" | "tags" | "status" | "codeUrl" | "artifacts" | "buildConfig" | "testConfig" | "deployConfig">
>;

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
    this.#control = new ControlClient(hubUrl, options);
  }

  async exists(ref: string, options: RequestOptions = {}): Promise<{ exists: boolean; status: EnvironmentStatus | null }> {
    const data = await this.#send("GET", `${pathOf(ref)}/exists`, `ask for environment '${ref}'`, options);
    if (!isObject(data) || typeof data.exists !== "boolean") throw unexpected(ref, data);
    return { exists: data.exists, status: data.exists ? readStatus(data.status ?? 0) : null };
  }

  async get(ref: string, options: RequestOptions = {}): Promise<EnvironmentRecord> {
    return readEnvironment(await this.#send("GET", pathOf(ref), `get environment '${ref}'`, options), ref);
  }

  async list(page: { limit?: number; offset?: number } = {}, options: RequestOptions = {}): Promise<EnvironmentRecord[]> {
    const { limit = 100, offset = 0 } = page;
    // With the slash: the original redirects the path without it.
    const data = await this.#send("GET", `/env/?limit=${limit}&offset=${offset}`, "list environments", options);
    if (data === null || data === undefined) return [];
    if (!Array.isArray(data)) throw unexpected("list", data);
    return data.map((one) => readEnvironment(one, "list"));
  }

  /** Publishes a version; an error with the code `environment.exists` if it is there already. */
  async create(ref: string, publication: Publication, options: RequestOptions = {}): Promise<void> {
    await this.#send("POST", "/env/", `publish environment '${ref}'`, options, { ...publication, ...readRef(ref) });
  }

  /** Replaces the given parts of a version that is not yet released. */
  async update(ref: string, publication: Publication, options: RequestOptions = {}): Promise<void> {
    await this.#send("PUT", pathOf(ref), `update environment '${ref}'`, options, { ...publication, ...readRef(ref) });
  }

  async status(ref: string, options: RequestOptions = {}): Promise<EnvironmentStatus> {
    const data = await this.#send("GET", `${pathOf(ref)}/status`, `ask for the status of '${ref}'`, options);
    if (!isObject(data)) throw unexpected(ref, data);
    return readStatus(data.status);
  }

  /** From now on the version cannot be changed. */
  async release(ref: string, options: RequestOptions = {}): Promise<void> {
    await this.#send("POST", `${pathOf(ref)}/release`, `release environment '${ref}'`, options);
  }

  #send(method: string, path: string, doing: string, options: RequestOptions, body?: unknown): Promise<unknown> {
    const rule = method === "POST" ? "once" : "idempotent";
    const codes: { notFound: ErrorCode; conflict: ErrorCode } = { notFound: "environment.not_found", conflict: "environment.exists" };
    return this.#control.send({ ...options, method, path, doing, rule, body, ...codes });
  }
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

/** The wire has a number in most places and a name in one. */
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
