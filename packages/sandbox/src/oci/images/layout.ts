import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { PlatformError } from "@aenv/contract";
import type { Architecture } from "../spec/seccomp.ts";
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
  /** From the lowest to the highest. */
  readonly layers: readonly { readonly diffId: string; readonly blob: string }[];
}

/** Go's names of architectures. */
export const GO_ARCHITECTURES = { x64: "amd64", arm64: "arm64" } as const satisfies Record<Architecture, string>;

const INDEXES = ["application/vnd.oci.image.index.v1+json", "application/vnd.docker.distribution.manifest.list.v2+json"];
const MAX_NESTING = 4;

type Json = Readonly<Record<string, unknown>>;

/** Reads an image of an OCI layout. The digests of manifest and configuration are checked here, those of layers when they are unpacked. */
export async function readLayout(folder: string, name: string | null, architecture: Architecture): Promise<LayoutImage> {
  const read = new LayoutReader(folder, architecture);
  const index = await read.index();
  const named = name === null ? index : index.filter((one) => object(one.annotations)["org.opencontainers.image.ref.name"] === name);
  const digest = await read.manifestDigest(named, name ?? "any name", 0);
  const manifest = await read.blob(digest);
  const config = await read.blob(digestOf(object(manifest.config)));
  const actual = config.architecture;
  if (actual !== GO_ARCHITECTURES[architecture])
    throw invalid(folder, `the image is for ${String(actual)}, and this machine is ${GO_ARCHITECTURES[architecture]}`);
  const diffIds = list(object(config.rootfs).diff_ids);
  const blobs = list(manifest.layers).map((layer) => read.pathOf(digestOf(object(layer))));
  if (diffIds.length !== blobs.length)
    throw invalid(folder, `the manifest has ${blobs.length} layers and the configuration ${diffIds.length}`);
  const layers = diffIds.map((diffId, at) => {
    if (!isDigest(diffId)) throw invalid(folder, `'${String(diffId)}' is not the digest of a layer`);
    return { diffId, blob: blobs[at] ?? "" };
  });
  return { digest, config: parseConfig(object(config.config)), layers };
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

  constructor(folder: string, architecture: Architecture) {
    this.#folder = folder;
    this.#architecture = architecture;
  }

  async index(): Promise<Json[]> {
    const text = await readFile(join(this.#folder, "index.json"), "utf8").catch((cause) => {
      throw new PlatformError("bundle.not_found", `${this.#folder} is not an OCI layout: its index.json cannot be read`, { cause });
    });
    return list(parseJson(this.#folder, text).manifests).map(object);
  }

  async manifestDigest(choices: readonly Json[], wanted: string, depth: number): Promise<string> {
    const ofMachine = choices.filter((one) => isForMachine(object(one.platform), this.#architecture));
    const [choice, another] = ofMachine;
    if (choice === undefined)
      throw invalid(this.#folder, `it has no image with ${wanted} for linux/${GO_ARCHITECTURES[this.#architecture]}`);
    if (another !== undefined && depth === 0)
      throw invalid(this.#folder, "it has several images; add the name of one, as in oci:PATH:NAME");
    const digest = digestOf(choice);
    if (!INDEXES.includes(String(choice.mediaType))) return digest;
    if (depth === MAX_NESTING) throw invalid(this.#folder, `its indexes are nested more than ${MAX_NESTING} times`);
    return this.manifestDigest(list((await this.blob(digest)).manifests).map(object), wanted, depth + 1);
  }

  async blob(digest: string): Promise<Json> {
    const bytes = await readFile(this.pathOf(digest)).catch((cause) => {
      throw new PlatformError("bundle.invalid", `the image in ${this.#folder} is incomplete: ${digest} is missing`, { cause });
    });
    if (`sha256:${createHash("sha256").update(bytes).digest("hex")}` !== digest)
      throw invalid(this.#folder, `the content of ${digest} is damaged`);
    return parseJson(this.#folder, bytes.toString("utf8"));
  }

  pathOf(digest: string): string {
    if (!isDigest(digest)) throw invalid(this.#folder, `'${digest}' is not a digest, which is sha256: and 64 hexadecimal digits`);
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

function parseJson(folder: string, text: string): Json {
  try {
    return object(JSON.parse(text));
  } catch (cause) {
    throw new PlatformError("bundle.invalid", `the image in ${folder} is damaged: a file of it is not JSON`, { cause });
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

function invalid(folder: string, problem: string): PlatformError {
  return new PlatformError("bundle.invalid", `the image in ${folder} cannot be used: ${problem}`);
}
