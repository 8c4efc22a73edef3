import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import type { Readable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { parseBoundedJson, ReadLimitExceeded, readBoundedBytes, readBoundedText } from "@aenv/contract";
import type { ImageReference } from "../images/reference.ts";
import type { MachineVariables } from "../images/skopeo.ts";
import { type Challenge, parseChallenge } from "./challenge.ts";
import { type Credentials, credentialsFor } from "./credentials.ts";
import { NOT_THERE, RegistryFailure, TOO_MANY_REQUESTS } from "./failure.ts";
import { type Destinations, type RegistryPolicy, registryUrl } from "./policy.ts";
import { type RegistryAnswer, Transport } from "./transport.ts";

export type RegistryReference = Extract<ImageReference, { readonly from: "registry" }>;

export interface RegistryClientOptions {
  readonly policy: RegistryPolicy;
  /** Credentials of registries, in the format of `docker login`. */
  readonly authFile?: string;
  /** Variables for proxies and certificates. */
  readonly variables?: MachineVariables;
  readonly signal: AbortSignal;
  /** Before a request is repeated; it doubles each time. */
  readonly retryMs?: number;
}

const ACCEPT = [
  "application/vnd.oci.image.index.v1+json",
  "application/vnd.docker.distribution.manifest.list.v2+json",
  "application/vnd.oci.image.manifest.v1+json",
  "application/vnd.docker.distribution.manifest.v2+json",
].join(", ");
const MAX_REDIRECTS = 5;
const ATTEMPTS = 3;
const RETRY_MS = 1_000;
const TOKEN_BYTES = 256 * 1024;
const TOKEN_MS = 60_000;
const ERROR_BYTES = 64 * 1024;
const ERROR_MS = 10_000;
const JSON_LIMITS = { maxDepth: 32, maxValues: 100_000 };

/**
 * Reads one repository of a registry. Credentials and tokens are sent to that registry only, and credentials also to the token server that
 * it names; never to where it redirects. Dispose it after the last body was read.
 */
export class RegistryClient implements AsyncDisposable {
  readonly #reference: RegistryReference;
  readonly #options: RegistryClientOptions;
  readonly #destinations: Destinations;
  readonly #transport: Transport;
  readonly #credentials: Credentials | null;
  #base: Promise<URL> | undefined;
  #authorization: string | null = null;

  constructor(reference: RegistryReference, options: RegistryClientOptions) {
    const { policy, variables = {}, authFile } = options;
    this.#reference = reference;
    this.#options = options;
    this.#destinations = policy.destinations(reference.registry);
    this.#transport = new Transport({ destinations: this.#destinations, variables });
    this.#credentials = authFile === undefined ? null : credentialsFor(reference.registry, readFileSync(authFile, "utf8"), authFile);
  }

  /** The manifest or index with a tag or digest, whose content is checked. */
  async manifest(name: string, maxBytes: number): Promise<Manifest> {
    return this.retried(async () => {
      const { headers, body } = await this.#get(`manifests/${name}`, { accept: ACCEPT });
      const bytes = await this.#read(readBoundedBytes(body, { maxBytes }), `the manifest ${name}`);
      const digest = `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
      if (name.includes(":") && name !== digest) throw new RegistryFailure("invalid", `its registry has the content ${digest} as ${name}`);
      return { bytes, digest, content: this.#json(bytes), contentType: String(headers["content-type"] ?? "") };
    });
  }

  /** The bytes of a blob as the registry sends them. Neither their number nor their digest is checked. */
  async blob(digest: string): Promise<Readable> {
    const { body } = await this.#get(`blobs/${digest}`, {});
    return body;
  }

  /** Repeats what failed for a moment. */
  async retried<T>(work: () => Promise<T>): Promise<T> {
    const { signal, retryMs = RETRY_MS } = this.#options;
    for (let attempt = 1; ; attempt++) {
      try {
        return await work();
      } catch (error) {
        if (!(error instanceof RegistryFailure && error.isTemporary) || attempt === ATTEMPTS) throw error;
        await delay(retryMs * 2 ** (attempt - 1), undefined, { signal });
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#transport[Symbol.asyncDispose]();
  }

  async #get(path: string, headers: Readonly<Record<string, string>>): Promise<RegistryAnswer> {
    this.#base ??= this.#findBase().catch((error: unknown) => {
      this.#base = undefined;
      throw error;
    });
    const base = await this.#base;
    const url = new URL(`v2/${this.#reference.repository}/${path}`, base);
    const answer = await this.#follow(url, base, headers);
    if (answer.status !== 401) return this.#checked(answer, url);
    const challenge = parseChallenge(answer.headers["www-authenticate"]);
    const authorization = challenge === null ? null : await this.#authorize(challenge, base);
    if (authorization === null) return this.#checked(answer, url);
    answer.body.destroy();
    this.#authorization = authorization;
    return this.#checked(await this.#follow(url, base, headers), url);
  }

  /** A registry without a valid certificate may have none at all. */
  async #findBase(): Promise<URL> {
    const secure = registryUrl(this.#reference.registry, "https");
    const plain = registryUrl(this.#reference.registry, "http");
    if (!this.#destinations.isInsecure(secure) && !this.#destinations.isInsecure(plain)) return secure;
    const { signal } = this.#options;
    const isSecure = await this.#transport.request(new URL("v2/", secure), { role: "registry", headers: {}, signal }).then(
      ({ body }) => {
        body.destroy();
        return true;
      },
      (error: unknown) => {
        if (error instanceof RegistryFailure && error.kind === "unreachable") return false;
        throw error;
      },
    );
    return isSecure ? secure : plain;
  }

  async #follow(start: URL, base: URL, headers: Readonly<Record<string, string>>): Promise<RegistryAnswer> {
    let url = start;
    for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects++) {
      const isRegistry = url.origin === base.origin;
      const answer = await this.#transport.request(url, {
        role: isRegistry ? "registry" : "storage",
        headers: { ...headers, ...(isRegistry && this.#authorization !== null && { authorization: this.#authorization }) },
        signal: this.#options.signal,
      });
      const { location } = answer.headers;
      if (answer.status < 300 || answer.status > 399) {
        // What another host wants to know is not for the registry's credentials to answer.
        if (!isRegistry && answer.status === 401) return { ...answer, headers: {} };
        return answer;
      }
      answer.body.destroy();
      if (typeof location !== "string" || !URL.canParse(location, url.href)) throw unreachable(`${url.host} redirects to nowhere`);
      url = new URL(location, url);
      if (url.username !== "" || url.password !== "") throw unreachable(`${start.host} redirects to a URL with a password`);
    }
    throw unreachable(`${start.host} redirects more than ${MAX_REDIRECTS} times`);
  }

  /** The header for the registry; null if it wants credentials that the server does not have. */
  async #authorize(challenge: Challenge, base: URL): Promise<string | null> {
    if (challenge.scheme === "bearer") return `Bearer ${await this.#token(challenge.realm, challenge.service, base)}`;
    return this.#credentials?.kind === "password" ? basic(this.#credentials) : null;
  }

  async #token(realm: string, service: string | null, base: URL): Promise<string> {
    if (!URL.canParse(realm)) throw unreachable(`${base.host} names a token server that is no URL`);
    const url: URL = new URL(realm);
    if (url.username !== "" || url.password !== "") throw unreachable(`${base.host} names a token server with a password`);
    const credentials = this.#mayHaveCredentials(url, base) ? this.#credentials : null;
    const isExchange = credentials?.kind === "identity";
    const fields = {
      ...(service !== null && { service }),
      scope: `repository:${this.#reference.repository}:pull`,
      ...(isExchange && { grant_type: "refresh_token", client_id: "aenv", refresh_token: credentials.token }),
    };
    if (!isExchange) for (const [name, value] of Object.entries(fields)) url.searchParams.set(name, value);
    const answer = await this.#transport.request(url, {
      role: url.origin === base.origin ? "registry" : "token server",
      headers: credentials?.kind === "password" ? { authorization: basic(credentials) } : {},
      signal: this.#options.signal,
      ...(isExchange && { form: fields }),
    });
    if (answer.status !== 200) throw await failureOf(answer, url);
    const text = await this.#read(readBoundedText(answer.body, { maxBytes: TOKEN_BYTES, timeoutMs: TOKEN_MS }), "a token");
    const { token, access_token: other } = this.#json(Buffer.from(text));
    const found = typeof token === "string" && token !== "" ? token : other;
    // The alphabet of tokens: a text that is something else is not sent on.
    if (typeof found !== "string" || !/^[A-Za-z0-9._~+/=-]+$/.test(found)) throw unreachable(`${url.host} answers without a token`);
    return found;
  }

  /**
   * Docker's protocol sends the password to a token server that the registry names. A registry that has shown no valid certificate may be
   * somebody else, so it may name only itself, or a host that the operator lists.
   */
  #mayHaveCredentials(tokenServer: URL, base: URL): boolean {
    const isProved = base.protocol === "https:" && !this.#destinations.isInsecure(base);
    return tokenServer.origin === base.origin || isProved || this.#destinations.isListed(tokenServer);
  }

  async #checked(answer: RegistryAnswer, url: URL): Promise<RegistryAnswer> {
    if (answer.status === 200) return answer;
    throw await failureOf(answer, url);
  }

  async #read<T>(reading: Promise<T>, what: string): Promise<T> {
    try {
      return await reading;
    } catch (error) {
      throw this.#options.signal.aborted ? this.#options.signal.reason : readFailure(error, what);
    }
  }

  #json(bytes: Uint8Array): Json {
    try {
      const parsed = parseBoundedJson(Buffer.from(bytes).toString("utf8"), JSON_LIMITS);
      if (typeof parsed === "object" && parsed !== null && !Array.isArray(parsed)) return parsed as Json;
    } catch (cause) {
      throw unreachable(`${this.#reference.registry} answers with something else than JSON`, cause);
    }
    throw unreachable(`${this.#reference.registry} answers with something else than a JSON object`);
  }
}

export type Json = Readonly<Record<string, unknown>>;

export interface Manifest {
  readonly bytes: Uint8Array;
  readonly digest: string;
  readonly content: Json;
  readonly contentType: string;
}

/** Why a body was not read to its end. */
export function readFailure(error: unknown, what: string): RegistryFailure {
  if (error instanceof RegistryFailure) return error;
  if ((error as NodeJS.ErrnoException).code === "ENOSPC") return new RegistryFailure("full", "the disk of the server is full");
  if (error instanceof ReadLimitExceeded) return new RegistryFailure("invalid", `${what} is refused: ${error.message}`);
  return new RegistryFailure("unreachable", `${what} could not be read: ${String(error)}`, { cause: error, isTemporary: true });
}

const CODES: Readonly<Record<string, string>> = {
  MANIFEST_UNKNOWN: NOT_THERE,
  NAME_UNKNOWN: NOT_THERE,
  NAME_INVALID: NOT_THERE,
  NOT_FOUND: NOT_THERE,
  BLOB_UNKNOWN: NOT_THERE,
  UNAUTHORIZED: NOT_THERE,
  DENIED: NOT_THERE,
  TOOMANYREQUESTS: TOO_MANY_REQUESTS,
};

/** What registries answer as such says something to the owner; nothing else of an answer does. */
async function failureOf({ status, headers, body }: RegistryAnswer, url: URL): Promise<RegistryFailure> {
  const text = await readBoundedText(body, { maxBytes: ERROR_BYTES, timeoutMs: ERROR_MS }).catch(() => "");
  const known = codesIn(text).map((code) => CODES[code]);
  const meaning = known.find((one) => one !== undefined);
  if (meaning !== undefined && status >= 400 && status < 500) return new RegistryFailure("denied", meaning);
  const isRegistry = headers["docker-distribution-api-version"] !== undefined || parseChallenge(headers["www-authenticate"]) !== null;
  if (isRegistry && (status === 401 || status === 403 || status === 404)) return new RegistryFailure("denied", NOT_THERE);
  return new RegistryFailure("unreachable", `${url.host} answers ${status}: ${text.slice(0, 500)}`, {
    isTemporary: status === 429 || status >= 500,
  });
}

function codesIn(text: string): string[] {
  try {
    const { errors } = parseBoundedJson(text, JSON_LIMITS) as { readonly errors?: unknown };
    return Array.isArray(errors) ? errors.map((one: Json | null) => String(one?.code ?? "")) : [];
  } catch {
    return [];
  }
}

function basic({ username, password }: Credentials & { readonly kind: "password" }): string {
  return `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`;
}

function unreachable(detail: string, cause?: unknown): RegistryFailure {
  return new RegistryFailure("unreachable", detail, { cause });
}
