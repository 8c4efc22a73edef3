import { readFileSync } from "node:fs";
import { request as httpRequest } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import { gzipSync, zstdCompressSync } from "node:zlib";
import { describeNeeding, temporaryTree } from "@aenv/testing";
import { describe, expect, it } from "vitest";
import type { Architecture } from "../engine/architecture.ts";
import { layerTar } from "../images/fixtures/layout.ts";
import { LayerStore } from "../images/layers.ts";
import { Images, type ImagesOptions } from "../oci/images.ts";
import { answerFrom, blobOf, describeBlob, goArchitecture, imageOf } from "./fixtures/image.ts";
import { lookupOf } from "./fixtures/lookup.ts";
import { CERTIFICATE, startServer } from "./fixtures/server.ts";

const get = { pull: "missing", signal: AbortSignal.timeout(60_000) } as const;
const users = "me:secret";
const basic = `Basic ${Buffer.from(users).toString("base64")}`;

function openImages(folder: string, options: Partial<ImagesOptions>) {
  const layers = new LayerStore(folder);
  const images = new Images({ folder: join(folder, "images"), layers, architecture: process.arch as Architecture, retryMs: 0, ...options });
  const read = (layer: string, path: string) => readFileSync(join(layers.folder, layers.filesOf(layer), path), "utf8");
  return { images, read };
}

/** An image with one layer of each compression, in an index in the format of Docker. */
function severalLayers() {
  const tars = ["gzip", "zstd", "plain"].map((name) => layerTar({ [name]: name }));
  const blobs = [gzipSync(tars[0] as Buffer), zstdCompressSync(tars[1] as Buffer), tars[2] as Buffer].map(blobOf);
  const { config, manifest } = imageOf(
    blobs,
    tars.map((tar) => blobOf(tar).digest),
  );
  const entries = [
    { ...describeBlob(blobOf({}), "application/vnd.oci.image.manifest.v1+json"), platform: { os: "unknown", architecture: "unknown" } },
    {
      ...describeBlob(blobOf({}), "application/vnd.docker.distribution.manifest.v2+json"),
      platform: { os: "linux", architecture: "s390x" },
    },
    { ...describeBlob(manifest), platform: { os: "linux", architecture: goArchitecture() } },
  ];
  const index = blobOf({ schemaVersion: 2, mediaType: "application/vnd.docker.distribution.manifest.list.v2+json", manifests: entries });
  return { index, manifest, blobs: [config, manifest, ...blobs] };
}

describeNeeding("overlay", "an image of a registry", () => {
  it("is read with a token of its token server, from an index, with layers of any compression at another host", async () => {
    using home = temporaryTree();
    const { index, blobs } = severalLayers();
    await using storage = await startServer(({ url = "" }, response) => answerFrom(url, response, blobs, {}));
    await using tokens = await startServer((_, response) => response.end(JSON.stringify({ access_token: "abc.def" })));
    await using registry = await startServer(({ url = "", headers: { authorization } }, response) => {
      if (authorization !== "Bearer abc.def") {
        const challenge = `Bearer realm="http://${tokens.host}/token?a=b",service="the registry",scope="ignored"`;
        return void response.writeHead(401, { "www-authenticate": challenge }).end();
      }
      if (url.includes("/blobs/")) return void response.writeHead(307, { location: `http://${storage.host}${url}` }).end();
      answerFrom(url, response, blobs, { v1: index });
    });
    home.write({ "auth.json": { auths: { [registry.host]: { auth: Buffer.from(users).toString("base64") } } } });
    const { images, read } = openImages(home.path, {
      insecureRegistries: [registry.host, storage.host, tokens.host],
      authFile: join(home.path, "auth.json"),
    });
    const image = await images.get(`${registry.host}/team/name:v1`, get);
    expect(image).toMatchObject({ sourceDigest: index.digest, config: { command: ["run"] } });
    expect(image.layers.map((layer, at) => read(layer, ["gzip", "zstd", "plain"][at] ?? ""))).toEqual(["gzip", "zstd", "plain"]);
    expect(tokens.requests).toEqual([
      { host: tokens.host, authorization: basic, path: "/token?a=b&service=the+registry&scope=repository%3Ateam%2Fname%3Apull" },
    ]);
    expect(storage.requests.every(({ authorization }) => authorization === null)).toBe(true);
  });

  it("gets its token for an identity token of docker login", async () => {
    using home = temporaryTree();
    const { manifest, blobs } = severalLayers();
    const forms: string[] = [];
    await using registry = await startServer((request, response) => {
      const { url = "", headers } = request;
      if (url === "/token") {
        request.on("data", (chunk) => forms.push(String(chunk)));
        return void request.on("end", () => response.end(JSON.stringify({ token: "exchanged" })));
      }
      if (headers.authorization !== "Bearer exchanged")
        return void response.writeHead(401, { "www-authenticate": `Bearer realm="http://${headers.host}/token",service=s` }).end();
      answerFrom(url, response, blobs, { latest: manifest });
    });
    home.write({ "auth.json": { auths: { [registry.host]: { identitytoken: "refresh" } } } });
    const { images } = openImages(home.path, { insecureRegistries: [registry.host], authFile: join(home.path, "auth.json") });
    await images.get(`${registry.host}/x`, get);
    expect(forms.map((form) => Object.fromEntries(new URLSearchParams(form)))).toEqual([
      { service: "s", scope: "repository:x:pull", grant_type: "refresh_token", client_id: "aenv", refresh_token: "refresh" },
    ]);
  });

  it("is read again where the connection or the registry failed for a moment", async () => {
    using home = temporaryTree();
    const { manifest, blobs } = severalLayers();
    const failed = new Set<string>();
    await using registry = await startServer(({ url = "" }, response) => {
      if (url === "/v2/" || failed.has(url)) return answerFrom(url, response, blobs, { latest: manifest });
      failed.add(url);
      if (failed.size % 2 === 0) return void response.writeHead(503).end();
      response.writeHead(200, { "content-length": 100_000 }).write("half");
      setImmediate(() => response.destroy());
    });
    const { images } = openImages(home.path, { insecureRegistries: [registry.host] });
    expect((await images.get(`${registry.host}/x`, get)).layers).toHaveLength(3);
    expect(failed.size).toBe(5);
  });

  it("is read over TLS from a listed host whose certificate the operator trusts", async () => {
    using home = temporaryTree();
    const { manifest, blobs } = severalLayers();
    await using registry = await startServer(({ url = "" }, response) => answerFrom(url, response, blobs, { latest: manifest }), {
      isSecure: true,
    });
    const image = `registry.test:${registry.port}/x`;
    const access = { imageRegistries: [`registry.test:${registry.port}`], lookup: lookupOf({ "registry.test": ["127.0.0.1"] }) };
    await expect(openImages(home.path, access).images.get(image, get)).rejects.toThrow("could not be reached");
    expect(registry.requests).toEqual([]);
    const { images } = openImages(home.path, { ...access, variables: { SSL_CERT_FILE: CERTIFICATE } });
    expect((await images.get(image, get)).layers).toHaveLength(3);
    const unchecked = openImages(join(home.path, "other"), { ...access, insecureRegistries: [`registry.test:${registry.port}`] });
    expect((await unchecked.images.get(image, get)).layers).toHaveLength(3);
  });
});

describe("the operator's proxy", () => {
  it("is asked for registries, and never for what the policy does not allow", async () => {
    using home = temporaryTree();
    const names = lookupOf({ "internal.test": ["10.0.0.1"] });
    await using registry = await startServer((_, response) => response.writeHead(401, { "www-authenticate": "Basic realm=x" }).end(), {
      isSecure: true,
    });
    const asked: string[] = [];
    await using proxy = await startServer((request, response) => {
      asked.push(request.url ?? "");
      request.pipe(httpRequest(request.url ?? "", () => response.end()));
    });
    proxy.server.on("connect", ({ url = "" }, socket) => {
      asked.push(url);
      socket.on("error", () => {});
      const upstream = connect(registry.port, "127.0.0.1", () => {
        socket.write("HTTP/1.1 200 Connection established\r\n\r\n");
        upstream.pipe(socket).pipe(upstream);
      });
    });
    const variables = { https_proxy: `http://${proxy.host}`, no_proxy: "direct.test", SSL_CERT_FILE: CERTIFICATE };
    const { images } = openImages(home.path, { variables, lookup: names });
    // The name has an address for the proxy only.
    await expect(images.get("registry.test/x", get)).rejects.toThrow("wants other credentials");
    expect(asked).toEqual(["registry.test:443"]);
    for (const host of ["10.0.0.1", "169.254.169.254", "internal.test", "127.0.0.1:1", "direct.test"])
      await expect(images.get(`${host}/x`, get), host).rejects.toThrow("has no public address");
    expect(asked).toEqual(["registry.test:443"]);
  });

  it("gives no password to a token server that a registry without a certificate names", async () => {
    using home = temporaryTree();
    await using tokens = await startServer((_, response) => response.end(JSON.stringify({ token: "t" })), { isSecure: true });
    await using registry = await startServer(({ headers }, response) => {
      if (headers.authorization !== undefined) return void response.writeHead(404).end();
      response.writeHead(401, { "www-authenticate": 'Bearer realm="https://token.test/",service=s' }).end();
    });
    await using proxy = await startServer((_, response) => response.writeHead(502).end());
    proxy.server.on("connect", (_, socket) => {
      const upstream = connect(tokens.port, "127.0.0.1", () => {
        socket.write("HTTP/1.1 200 Connection established\r\n\r\n");
        upstream.pipe(socket).pipe(upstream);
      });
    });
    home.write({ "auth.json": { auths: { [registry.host]: { auth: Buffer.from(users).toString("base64") } } } });
    const access = {
      insecureRegistries: [registry.host],
      authFile: join(home.path, "auth.json"),
      variables: { https_proxy: `http://${proxy.host}`, SSL_CERT_FILE: CERTIFICATE },
      lookup: lookupOf({}),
    };
    const { images } = openImages(home.path, access);
    await expect(images.get(`${registry.host}/x`, get)).rejects.toThrow("could not be pulled");
    const listed = openImages(home.path, { ...access, imageRegistries: ["token.test"] });
    await expect(listed.images.get(`${registry.host}/x`, get)).rejects.toThrow("could not be pulled");
    expect(tokens.requests.map(({ authorization }) => authorization)).toEqual([null, basic]);
  });
});
