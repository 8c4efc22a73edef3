import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import { Readable } from "node:stream";
import { gzipSync } from "node:zlib";
import { endless } from "./models.ts";

/** A registry of images that attacks the clients that pull them. */
export interface HostileRegistry extends AsyncDisposable {
  /** `127.0.0.1:PORT`. */
  readonly host: string;
  /** One image for each attack. */
  readonly images: readonly string[];
  /** Connections to a port of the machine to which the registry sends its clients. */
  internalConnections(): number;
}

interface Blob {
  readonly digest: string;
  readonly size: number;
  /** Pieces, some of which are the same. */
  readonly pieces: readonly Uint8Array[];
}

const MEBIBYTE = 1_024 ** 2;
const MANIFEST = "application/vnd.oci.image.manifest.v1+json";
const CONFIG = "application/vnd.oci.image.config.v1+json";
const LAYER = "application/vnd.oci.image.layer.v1.tar+gzip";

export async function hostileRegistry(): Promise<HostileRegistry> {
  let connections = 0;
  const internal = createTcpServer((socket) => {
    connections++;
    socket.destroy();
  });
  await once(internal.listen(0, "127.0.0.1"), "listening");
  const inside = `http://127.0.0.1:${(internal.address() as AddressInfo).port}`;

  const layers = { zeros: zeros(), entries: entries() };
  const blobs = new Map<string, Blob>();
  const images = new Map<string, Uint8Array>();
  const endlessBlob = blobOf([Buffer.from("without an end")]);
  const elsewhere = blobOf([Buffer.from("at another place")]);
  for (const [name, layer] of Object.entries({ ...layers, endless: endlessBlob, redirect: elsewhere })) {
    const config = blobOf([Buffer.from(JSON.stringify(configOf(layer)))]);
    blobs.set(layer.digest, layer).set(config.digest, config);
    images.set(name, Buffer.from(JSON.stringify(manifestOf(config, layer))));
  }

  const server = createServer((request, response) => {
    request.resume();
    response.on("error", () => {});
    const url = request.url ?? "";
    if (url.startsWith("/v2/realm/") || url.startsWith("/v2/huge/")) {
      if (url.startsWith("/v2/huge/")) return endless(response.writeHead(200, { "content-type": MANIFEST }), '{"a":"');
      const realm = `Bearer realm="${inside}/token",service="internal"`;
      return void response.writeHead(401, { "www-authenticate": realm }).end("{}");
    }
    if (url === "/v2/") return void response.end("{}");
    const [, name = "", kind, id = ""] = /^\/v2\/([a-z]+)\/(manifests|blobs)\/(.+)$/.exec(url) ?? [];
    if (kind === "manifests") return sendManifest(response, images.get(name), request.method === "HEAD");
    const blob = blobs.get(id);
    if (blob === undefined) return void response.writeHead(404).end("{}");
    if (blob === elsewhere) return void response.writeHead(307, { location: `${inside}/secret` }).end();
    if (blob === endlessBlob) return endless(response.writeHead(200, { "content-type": "application/octet-stream" }), "a");
    response.writeHead(200, { "content-length": blob.size, "content-type": "application/octet-stream" });
    Readable.from(blob.pieces).pipe(response);
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    host,
    images: [...images.keys(), "realm", "huge"].map((name) => `${host}/${name}:1`),
    internalConnections: () => connections,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
      internal.close();
    },
  };
}

function sendManifest(response: ServerResponse, manifest: Uint8Array | undefined, isHead: boolean): void {
  if (manifest === undefined) return void response.writeHead(404).end("{}");
  const digest = digestOf([manifest]);
  response.writeHead(200, { "content-type": MANIFEST, "content-length": manifest.length, "docker-content-digest": digest });
  response.end(isHead ? undefined : manifest);
}

/** A file of 8 GiB of zeros, in 8 MiB. Before, all of them were written to the disk. */
function zeros(): Blob {
  const member = gzipSync(Buffer.alloc(64 * MEBIBYTE));
  return blobOf([gzipSync(header("zeros", 8 * 1_024 * MEBIBYTE)), ...Array<Uint8Array>(128).fill(member)]);
}

/** Two million empty files. Before, an entry took 448 bytes of the server's heap. */
function entries(): Blob {
  const heads = Array.from({ length: 10_000 }, (_, at) => header(`file-${at}`, 0));
  return blobOf(Array<Uint8Array>(200).fill(gzipSync(Buffer.concat(heads))));
}

/** The head of a file in a tar archive. */
function header(name: string, size: number): Buffer {
  const head = Buffer.alloc(512);
  head.write(name, 0);
  head.write(["0000644", "0000000", "0000000", ""].join("\0"), 100);
  head.write(size < 8 ** 11 ? `${size.toString(8).padStart(11, "0")}\0` : "", 124);
  if (size >= 8 ** 11) {
    head[124] = 0x80;
    head.writeBigUInt64BE(BigInt(size), 128);
  }
  head.write("00000000000\0", 136);
  head.write("        0", 148);
  head.write("ustar\x0000", 257);
  const sum = head.reduce((total, byte) => total + byte, 0);
  head.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  return head;
}

function blobOf(pieces: readonly Uint8Array[]): Blob {
  return { digest: digestOf(pieces), size: pieces.reduce((sum, { length }) => sum + length, 0), pieces };
}

function digestOf(pieces: readonly Uint8Array[]): string {
  const hash = createHash("sha256");
  for (const piece of pieces) hash.update(piece);
  return `sha256:${hash.digest("hex")}`;
}

/** The digest of the unpacked layer is that of the packed one, so that it need not be computed: the limit is reached before. */
function configOf({ digest }: Blob): object {
  const architecture = process.arch === "arm64" ? "arm64" : "amd64";
  return { architecture, os: "linux", config: {}, rootfs: { type: "layers", diff_ids: [digest] } };
}

function manifestOf(config: Blob, layer: Blob): object {
  const named = ({ digest, size }: Blob, mediaType: string) => ({ mediaType, digest, size });
  return { schemaVersion: 2, mediaType: MANIFEST, config: named(config, CONFIG), layers: [named(layer, LAYER)] };
}
