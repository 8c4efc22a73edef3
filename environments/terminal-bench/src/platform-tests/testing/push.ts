import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { gzipSync } from "node:zlib";
import type { ImageRegistry } from "@aenv/testing";

/** A layer of an image, compressed. */
export interface Layer {
  readonly digest: string;
  readonly diffId: string;
  readonly bytes: Uint8Array;
}

/** The files of a folder as a layer, without some of its folders. */
export function layerOf(folder: string, exclude: readonly string[] = []): Layer {
  const args = ["--create", "--numeric-owner", ...exclude.map((name) => `--exclude=./${name}`), "-C", folder, "."];
  const tar = execFileSync("tar", args, { maxBuffer: 2 ** 30 });
  const bytes = gzipSync(tar, { level: 1 });
  return { digest: digestOf(bytes), diffId: digestOf(tar), bytes };
}

/** Pushes images to a registry by its API. Layers that it has in another image are not sent again. */
export class Pusher {
  readonly #registry: ImageRegistry;
  /** Where a blob is. */
  readonly #known = new Map<string, string>();

  constructor(registry: ImageRegistry) {
    this.#registry = registry;
  }

  /** `name` is without the registry, such as `team/tasks:one`. Returns the full name. */
  async push(name: string, layers: readonly Layer[], config: object): Promise<string> {
    const [repository = "", tag = "latest"] = name.split(":");
    const image = Buffer.from(
      JSON.stringify({
        architecture: process.arch === "x64" ? "amd64" : process.arch,
        os: "linux",
        config,
        rootfs: { type: "layers", diff_ids: layers.map(({ diffId }) => diffId) },
      }),
    );
    const blobs = [{ digest: digestOf(image), bytes: image }, ...layers];
    for (const blob of blobs) await this.#send(repository, blob);
    const types = ["application/vnd.oci.image.config.v1+json", ...layers.map(() => "application/vnd.oci.image.layer.v1.tar+gzip")];
    const [own, ...rest] = blobs.map(({ digest, bytes }, i) => ({ mediaType: types[i], digest, size: bytes.length }));
    const manifest = { schemaVersion: 2, mediaType: "application/vnd.oci.image.manifest.v1+json", config: own, layers: rest };
    const headers = { "content-type": manifest.mediaType };
    await this.#ask("PUT", `/v2/${repository}/manifests/${tag}`, 201, { body: JSON.stringify(manifest), headers });
    return `${this.#registry.host}/${name}`;
  }

  async #send(repository: string, { digest, bytes }: Pick<Layer, "digest" | "bytes">): Promise<void> {
    const elsewhere = this.#known.get(digest);
    const mount = elsewhere === undefined ? "" : `?mount=${digest}&from=${elsewhere}`;
    const response = await this.#ask("POST", `/v2/${repository}/blobs/uploads/${mount}`, elsewhere === undefined ? 202 : 201);
    if (elsewhere !== undefined) return;
    const place = new URL(response.headers.get("location") ?? "", `http://${this.#registry.host}`);
    place.searchParams.set("digest", digest);
    const headers = { "content-type": "application/octet-stream" };
    await this.#ask("PUT", `${place.pathname}${place.search}`, 201, { body: bytes as Uint8Array<ArrayBuffer>, headers });
    this.#known.set(digest, repository);
  }

  async #ask(method: string, path: string, status: number, more: RequestInit = {}): Promise<Response> {
    const { host, username, password } = this.#registry;
    const authorization = `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`;
    const response = await fetch(`http://${host}${path}`, { ...more, method, headers: { ...more.headers, authorization } });
    if (response.status !== status) throw new Error(`${method} ${path} was answered with ${response.status}: ${await response.text()}`);
    return response;
  }
}

function digestOf(bytes: Uint8Array): string {
  return `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
}
