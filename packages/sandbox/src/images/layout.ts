import { createHash } from "node:crypto";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { formatBytes, isPlatformError, messageOf, PlatformError, parseBoundedJson } from "@aenv/contract";
import type { Architecture } from "../engine/architecture.ts";
import { isDigest } from "./reference.ts";

/** What an image says about its program. */
export interface ImageConfig {
  readonly entrypoint: readonly string[];
  /** Entry point and command together; empty if the image has no program. */
  readonly command: readonly string[];
  readonly variables: readonly string[];
  /** `user`, `uid`, `user:group` or `uid:gid`; empty for root. */
  readonly user: string;
  readonly workingDirectory: string;
  readonly ports: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
}

export interface LayoutImage {
  /** The digest of the manifest. */
  readonly digest: string;
  readonly config: ImageConfig;
  /** Layers from the lowest to the highest. */
  readonly layers: readonly { readonly diffId: string; readonly blob: string }[];
}

/** Go's names of architectures. */
export const GO_ARCHITECTURES = { x64: "amd64", arm64: "arm64" } as const satisfies Record<Architecture, string>;

const INDEXES = ["application/vnd.oci.image.index.v1+json", "application/vnd.docker.distribution.manifest.list.v2+json"];
const MAX_NESTING = 4;

/** Limit of an index, a manifest or a configuration. Registries accept no larger ones. */
const MAX_JSON_BYTES = 4 * 2 ** 20;
const JSON_LIMITS = { maxDepth: 32, maxValues: 100_000 };
/** Linux mounts no more than 500 on each other, and snapshots come on top. */
const MAX_LAYERS = 256;
const MAX_HISTORY = 10_000;
/** Variables, ports, labels, and arguments of the program: each of these. */
const MAX_SETTINGS = 2_000;
/** All of them together. Every start of a sandbox reads them. */
const MAX_CONFIG_BYTES = 2 ** 20;

type Json = Readonly<Record<string, unknown>>;

/** Reads an image of an OCI layout; errors call it `image`. The digests of manifest and configuration are checked here, those of layers when they are unpacked. */
export async function readLayout(
  folder: string,
  name: string | null,
  architecture: Architecture,
  image = `in ${folder}`,
): Promise<LayoutImage> {
  const read = new LayoutReader(folder, architecture, image);
  const index = await read.index();
  const named = name === null ? index : index.filter((one) => object(one.annotations)["org.opencontainers.image.ref.name"] === name);
  const digest = await read.manifestDigest(named, name ?? "any name", 0);
  const manifest = await read.blob(digest);
  const config = await read.blob(digestOf(object(manifest.config)));
  const actual = config.architecture;
  if (actual !== GO_ARCHITECTURES[architecture])
    throw invalid(image, `the image is for ${String(actual)}, and this machine is ${GO_ARCHITECTURES[architecture]}`);
  const diffIds = list(object(config.rootfs).diff_ids);
  assertCount(image, "layers", Math.max(diffIds.length, list(manifest.layers).length), MAX_LAYERS);
  assertCount(image, "lines of history", list(config.history).length, MAX_HISTORY);
  const blobs = list(manifest.layers).map((layer) => read.pathOf(digestOf(object(layer))));
  if (diffIds.length !== blobs.length)
    throw invalid(image, `the manifest has ${blobs.length} layers and the configuration ${diffIds.length}`);
  const layers = diffIds.map((diffId, at) => {
    if (!isDigest(diffId)) throw invalid(image, `'${String(diffId)}' is not the digest of a layer`);
    return { diffId, blob: blobs[at] ?? "" };
  });
  return { digest, config: boundedConfig(image, parseConfig(object(config.config))), layers };
}

function boundedConfig(image: string, config: ImageConfig): ImageConfig {
  assertCount(image, "arguments", config.command.length, MAX_SETTINGS);
  assertCount(image, "variables", config.variables.length, MAX_SETTINGS);
  assertCount(image, "ports", config.ports.length, MAX_SETTINGS);
  assertCount(image, "labels", Object.keys(config.labels).length, MAX_SETTINGS);
  const bytes = Buffer.byteLength(JSON.stringify(config));
  if (bytes <= MAX_CONFIG_BYTES) return config;
  throw invalid(image, `its program, variables and labels have ${bytes} bytes; at most ${formatBytes(MAX_CONFIG_BYTES)} are read`);
}

function assertCount(image: string, what: string, count: number, max: number): void {
  if (count > max) throw invalid(image, `it has ${count} ${what}; at most ${max} are accepted`);
}

/** The part `config` of an image's configuration. */
export function parseConfig(config: Json): ImageConfig {
  return {
    entrypoint: texts(config.Entrypoint),
    command: [...texts(config.Entrypoint), ...texts(config.Cmd)],
    variables: texts(config.Env).filter((variable) => variable.indexOf("=") > 0),
    user: typeof config.User === "string" ? config.User : "",
    workingDirectory: typeof config.WorkingDir === "string" && config.WorkingDir.startsWith("/") ? config.WorkingDir : "/",
    ports: Object.keys(object(config.ExposedPorts)),
    labels: Object.fromEntries(
      Object.entries(object(config.Labels)).filter((label): label is [string, string] => typeof label[1] === "string"),
    ),
  };
}

class LayoutReader {
  readonly #folder: string;
  readonly #architecture: Architecture;
  readonly #image: string;

  constructor(folder: string, architecture: Architecture, image: string) {
    this.#image = image;
    this.#folder = folder;
    this.#architecture = architecture;
  }

  async index(): Promise<Json[]> {
    const bytes = await this.#read(join(this.#folder, "index.json"), "its index.json").catch((cause) => {
      if (isPlatformError(cause)) throw cause;
      throw new PlatformError("bundle.not_found", `${this.#folder} is not an OCI layout: its index.json cannot be read`, { cause });
    });
    return list(parseJson(this.#image, bytes).manifests).map(object);
  }

  async manifestDigest(choices: readonly Json[], wanted: string, depth: number): Promise<string> {
    const ofMachine = choices.filter((one) => isForMachine(object(one.platform), this.#architecture));
    const [choice, another] = ofMachine;
    if (choice === undefined)
      throw invalid(this.#image, `it has no image with ${wanted} for linux/${GO_ARCHITECTURES[this.#architecture]}`);
    if (another !== undefined && depth === 0) throw invalid(this.#image, "it has several images; add the name of one, as in oci:PATH:NAME");
    const digest = digestOf(choice);
    if (!INDEXES.includes(String(choice.mediaType))) return digest;
    if (depth === MAX_NESTING) throw invalid(this.#image, `its indexes are nested more than ${MAX_NESTING} times`);
    return this.manifestDigest(list((await this.blob(digest)).manifests).map(object), wanted, depth + 1);
  }

  async blob(digest: string): Promise<Json> {
    const bytes = await this.#read(this.pathOf(digest), digest).catch((cause) => {
      if (isPlatformError(cause)) throw cause;
      throw new PlatformError("bundle.invalid", `the image ${this.#image} is incomplete: ${digest} is missing`, { cause });
    });
    if (`sha256:${createHash("sha256").update(bytes).digest("hex")}` !== digest)
      throw invalid(this.#image, `the content of ${digest} is damaged`);
    return parseJson(this.#image, bytes);
  }

  async #read(path: string, what: string): Promise<Buffer> {
    await using file = await open(path);
    const { size } = await file.stat();
    if (size > MAX_JSON_BYTES) throw invalid(this.#image, `${what} has ${size} bytes; at most ${formatBytes(MAX_JSON_BYTES)} are read`);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(size), 0, size, 0);
    return buffer.subarray(0, bytesRead);
  }

  pathOf(digest: string): string {
    if (!isDigest(digest)) throw invalid(this.#image, `'${digest}' is not a digest, which is sha256: and 64 hexadecimal digits`);
    return join(this.#folder, "blobs/sha256", digest.slice("sha256:".length));
  }
}

/** Whether an entry of an index with this platform is for a machine; one that names no platform is. */
export function isForMachine(platform: Json, machine: Architecture): boolean {
  const { os, architecture } = platform;
  return (os ?? "linux") === "linux" && (architecture ?? GO_ARCHITECTURES[machine]) === GO_ARCHITECTURES[machine];
}

function digestOf(descriptor: Json): string {
  return String(descriptor.digest);
}

function parseJson(image: string, bytes: Buffer): Json {
  try {
    return object(parseBoundedJson(bytes.toString("utf8"), JSON_LIMITS));
  } catch (cause) {
    throw new PlatformError("bundle.invalid", `the image ${image} cannot be read: ${messageOf(cause)}`, { cause });
  }
}

function object(value: unknown): Json {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Json) : {};
}

function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function texts(value: unknown): readonly string[] {
  return list(value).filter((one) => typeof one === "string");
}

function invalid(image: string, problem: string): PlatformError {
  return new PlatformError("bundle.invalid", `the image ${image} cannot be used: ${problem}`);
}
