import { readFileSync } from "node:fs";
import { PlatformError, untilAborted } from "@aenv/contract";
import type { BaseRoot } from "../base-root/base-root.ts";
import { type ImageConfig, parseConfig } from "../images/layout.ts";
import { formatReference, type ImageReference, parseReference } from "../images/reference.ts";
import { credentialsFor } from "../registry/credentials.ts";
import { DAEMON_FAILURE, imageUnavailable, LOAD_HINT } from "../registry/failure.ts";
import { RegistryPolicy, type RegistryPolicyOptions } from "../registry/policy.ts";
import { type DockerApi, isDockerError, type Json } from "./api.ts";
import { jsonLines } from "./exits.ts";

export interface DockerImage {
  /** The id, so that a tag that moves between two requests does not matter. */
  readonly id: string;
  readonly config: ImageConfig;
}

/** Files that become an image. */
export type ImportedRoot = Pick<BaseRoot, "digest" | "archive">;

export interface DockerImagesOptions extends RegistryPolicyOptions {
  /** Credentials of registries, in the format of `docker login`. */
  readonly authFile?: string;
  /** Receives the progress of pulls. */
  readonly log?: (line: string) => void;
  readonly pullTimeoutMs?: number;
}

const PULL_TIMEOUT_MS = 15 * 60_000;

/** The images of the daemon; those that it lacks are pulled. */
export class DockerImages {
  readonly #api: DockerApi;
  readonly #options: DockerImagesOptions;
  readonly #policy: RegistryPolicy;
  readonly #pulls = new Map<string, Promise<void>>();

  constructor(api: DockerApi, options: DockerImagesOptions) {
    this.#api = api;
    this.#options = options;
    this.#policy = new RegistryPolicy(options);
  }

  async get(text: string, signal: AbortSignal): Promise<DockerImage> {
    const reference = parseReference(text);
    const name = daemonName(text, reference);
    const known = await this.find(name);
    if (known !== null) return known;
    if (reference.from !== "registry")
      throw imageUnavailable(`the Docker daemon at ${this.#api.socket} has no image '${name}'; load or build it`);
    let pulling = this.#pulls.get(name);
    if (pulling === undefined) {
      pulling = this.#pull(name, reference).finally(() => this.#pulls.delete(name));
      this.#pulls.set(name, pulling);
    }
    await untilAborted(pulling, signal);
    const pulled = await this.find(name);
    if (pulled === null) throw new PlatformError("sandbox.start_failed", `the image '${name}' was removed while it was needed`);
    return pulled;
  }

  /** Null if the daemon does not have it. */
  async find(name: string): Promise<DockerImage | null> {
    try {
      const { Id: id, Config: config } = await this.#api.call("GET", `/images/${name}/json`);
      return { id: String(id), config: parseConfig((config ?? {}) as Json) };
    } catch (error) {
      if (isDockerError(error, 404)) return null;
      throw error;
    }
  }

  /** The files of a base as an image, which is made with the label if the daemon does not have it. */
  async importRoot(repository: string, label: string, open: () => Promise<ImportedRoot>): Promise<DockerImage> {
    const root = await open();
    const tag = root.digest.slice("sha256:".length, "sha256:".length + 16);
    const name = `${repository}:${tag}`;
    const known = await this.find(name);
    if (known !== null) return known;
    // Podman ignores the parameter for the tag.
    const query = { fromSrc: "-", repo: name, changes: `LABEL ${label}` };
    const body = await this.#api.stream("POST", "/images/create", { query, archive: root.archive(), headersTimeoutMs: 0 });
    for await (const { error } of jsonLines(body))
      if (error !== undefined) throw new Error(`the image ${name} could not be made: ${error}`);
    const made = await this.find(name);
    if (made === null) throw new Error(`the image ${name} was removed while it was needed`);
    return made;
  }

  /** Removes the images with the label but this one. Those that a container has are left. */
  async removeOthers(label: string, kept: DockerImage): Promise<void> {
    const labelled = await this.#api.list("/images/json", { filters: JSON.stringify({ label: [label] }) });
    for (const { Id: id } of labelled) {
      // Podman leaves out the algorithm.
      if (String(id).endsWith(kept.id.replace(/^sha256:/, ""))) continue;
      await this.#api.call("DELETE", `/images/${id}`).catch((error: unknown) => {
        if (!isDockerError(error)) throw error;
      });
    }
  }

  async #pull(name: string, reference: ImageReference & { readonly from: "registry" }): Promise<void> {
    const { authFile, log = () => undefined, pullTimeoutMs = PULL_TIMEOUT_MS } = this.#options;
    const auth = authFile === undefined ? null : registryAuth(readFileSync(authFile, "utf8"), reference.registry, authFile);
    const failed = (reason: string) =>
      new PlatformError("sandbox.start_failed", `the image '${name}' could not be pulled: ${reason}${LOAD_HINT}`);
    // The daemon quotes registries, token servers and targets of redirects: which ports are open, and what answers there.
    const refused = (message: string) => {
      log(`${name} could not be pulled: ${message}`);
      return failed(`${DAEMON_FAILURE}; the server's log has the details`);
    };
    await this.#policy.assertAllowed(name, reference.registry);
    try {
      log(`pulling ${name}`);
      const body = await this.#api.stream("POST", "/images/create", {
        query: { fromImage: name },
        ...(auth !== null && { headers: { "x-registry-auth": auth } }),
        signal: AbortSignal.timeout(pullTimeoutMs),
        headersTimeoutMs: 0,
      });
      for await (const { status, id, error } of jsonLines(body)) {
        if (error !== undefined) throw refused(String(error));
        // Bytes of progress are many lines; the states of the layers are few.
        if (!["Downloading", "Extracting"].includes(String(status))) log(`${name}: ${id === undefined ? "" : `${id} `}${status}`);
      }
    } catch (error) {
      if (isDockerError(error)) throw refused(error.message);
      if ((error as Error).name === "TimeoutError") throw failed(`it took longer than ${pullTimeoutMs / 1_000} s`);
      throw error;
    }
  }
}

/** The name by which the daemon knows an image. */
export function daemonName(text: string, reference: ImageReference): string {
  if (reference.from === "registry") return formatReference(reference);
  if (reference.from === "docker-daemon") return reference.name;
  throw new PlatformError(
    "sandbox.unsupported",
    `the docker engine does not read '${text}'; copy it to the daemon first: skopeo copy ${text} docker-daemon:NAME:TAG`,
  );
}

/** The header of a pull with the credentials for a registry; null if the file has none. No error contains them. */
export function registryAuth(text: string, registry: string, file: string): string | null {
  const known = credentialsFor(registry, text, file);
  if (known === null) return null;
  const credentials = known.kind === "identity" ? { identitytoken: known.token } : { username: known.username, password: known.password };
  // The alphabet of URLs with padding, without which Docker ignores the credentials.
  const header = Buffer.from(JSON.stringify({ ...credentials, serveraddress: registry })).toString("base64");
  return header.replaceAll("+", "-").replaceAll("/", "_");
}
