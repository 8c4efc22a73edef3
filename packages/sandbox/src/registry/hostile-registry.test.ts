import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { createServer } from "node:net";
import { join } from "node:path";
import { temporaryTree } from "@aenv/testing";
import { describe, expect, it } from "vitest";
import type { Architecture } from "../engine/architecture.ts";
import { LayerStore } from "../images/layers.ts";
import { Images, type ImagesOptions } from "../oci/images.ts";
import { answerFrom, blobOf, describeBlob, imageOf } from "./fixtures/image.ts";
import { lookupOf } from "./fixtures/lookup.ts";
import { closedPort, startServer } from "./fixtures/server.ts";
import { RegistryPolicy } from "./policy.ts";

/** What an owner sees of a pull that fails, and what the operator sees in the log. */
async function failureOf(image: string, options: Partial<ImagesOptions> = {}) {
  using home = temporaryTree();
  const log: string[] = [];
  const images = new Images({
    folder: join(home.path, "images"),
    layers: new LayerStore(home.path),
    architecture: process.arch as Architecture,
    retryMs: 0,
    log: (line) => log.push(line),
    ...options,
  });
  const error = await images.get(image, { pull: "missing", signal: AbortSignal.timeout(30_000) }).then(
    () => null,
    (failure: Error & { code?: string }) => failure,
  );
  return { message: error?.message ?? "it was pulled", code: error?.code, log: log.join("\n") };
}

const json = (response: ServerResponse, status: number, body: unknown, headers: Readonly<Record<string, string>> = {}) =>
  response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(body));

// Before: skopeo connected to each of these, followed realms and redirects to internal addresses, sent what it found there to the registry as
// a token, and its errors told a closed port from an open one.
describe("an image at an internal address", () => {
  it("is refused without a connection, however the address of this machine is written", async () => {
    await using internal = await startServer((_, response) => response.end("{}"));
    const { port } = internal;
    for (const host of [
      "127.0.0.1",
      "127.1",
      "0x7f.0.0.1",
      "2130706433",
      "0.0.0.0",
      "localhost",
      "[::1]",
      "[::ffff:7f00:1]",
      "[::7f00:1]",
    ]) {
      const { message, code } = await failureOf(`${host}:${port}/team/x`);
      expect(code, host).toBe("sandbox.image_unavailable");
      expect(message, host).toMatch(/^the image '.*' is refused: its registry .* has no public address; .* imageRegistries$/);
    }
    expect(internal.connections).toBe(0);
  });

  it("is refused for private networks, link-local addresses and metadata services", async () => {
    const lookup = lookupOf({});
    for (const host of ["10.0.0.1", "192.168.1.1:5000", "172.16.0.1", "169.254.169.254", "100.64.0.1", "[fd00::1]:5000", "[fe80::1]"])
      expect((await failureOf(`${host}/x`, { lookup })).message, host).toContain("has no public address");
  });

  it("is refused for a name that resolves to one, without a connection", async () => {
    await using internal = await startServer((_, response) => response.end("{}"));
    const lookup = lookupOf({ "rebound.test": ["127.0.0.1"], "both.test": ["10.0.0.1", "::1", "127.0.0.1"] });
    for (const name of ["rebound.test", "both.test"])
      expect((await failureOf(`${name}:${internal.port}/x`, { lookup })).message).toContain(
        `its registry ${name}:${internal.port} has no public`,
      );
    expect(internal.connections).toBe(0);
  });

  it("gets the same answer whether the port is open or closed, and whether the name exists", async () => {
    await using open = await startServer((_, response) => response.end("{}"));
    const closed = await closedPort();
    const lookup = lookupOf({ "exists.test": ["127.0.0.1"] });
    const texts = await Promise.all(
      [open.host, closed, `exists.test:${open.port}`, `missing.test:${open.port}`].map(async (host) =>
        (await failureOf(`${host}/x`, { lookup })).message.replaceAll(host, "HOST"),
      ),
    );
    expect(new Set(texts).size).toBe(1);
  });
});

describe("a registry that answers its clients with an internal address", () => {
  it("does not make the server fetch its token from there", async () => {
    await using internal = await startServer((_, response) => json(response, 200, { token: "internal" }), { isSecure: true });
    const lookup = lookupOf({ "rebound.test": ["127.0.0.1"] });
    const realms = [
      `https://${internal.host}/secret`,
      `https://rebound.test:${internal.port}/secret`,
      `http://${internal.host}/secret`,
      "http://169.254.169.254/latest/meta-data/",
      "https://169.254.169.254/latest/meta-data/",
    ];
    for (const realm of realms) {
      await using registry = await startServer((_, response) =>
        json(response, 401, {}, { "www-authenticate": `Bearer realm="${realm}",service="registry"` }),
      );
      const { message } = await failureOf(`${registry.host}/x`, { insecureRegistries: [registry.host], lookup });
      expect(message, realm).toMatch(
        /is refused: the token server .*, which its registry names, (?:has no public address|would be asked without encryption)/,
      );
      // The registry gets no request with what was found there.
      expect(registry.requests.every(({ authorization }) => authorization === null)).toBe(true);
    }
    expect(internal.connections).toBe(0);
  });

  it("does not make the server follow its redirect there, for a manifest or a blob", async () => {
    await using internal = await startServer((_, response) => json(response, 200, { token: "internal" }), { isSecure: true });
    const layer = blobOf(Buffer.from("a layer"));
    const { manifest, config } = imageOf([layer], [layer.digest]);
    const lookup = lookupOf({ "rebound.test": ["127.0.0.1"] });
    for (const kind of ["manifests", "blobs"])
      for (const target of [
        `https://${internal.host}/`,
        `https://rebound.test:${internal.port}/`,
        `//${internal.host}/`,
        "http://169.254.169.254/latest/",
      ]) {
        await using registry = await startServer(({ url = "" }, response) => {
          if (url.includes(`/${kind}/`)) return void response.writeHead(307, { location: target }).end();
          answerFrom(url, response, [config, layer], { latest: manifest });
        });
        const { message } = await failureOf(`${registry.host}/x`, { insecureRegistries: [registry.host], lookup });
        expect(message, target).toMatch(/is refused: the host .*, to which its registry redirects, /);
      }
    expect(internal.connections).toBe(0);
  });

  it("reaches no listed registry if it is not listed itself", async () => {
    const lookup = lookupOf({ "listed.test": ["10.0.0.1"], "public.test": ["10.0.0.2"] });
    const listed = { imageRegistries: ["listed.test:5000"], lookup };
    // Refused as the registry, not because of where it leads.
    expect((await failureOf("public.test/x", listed)).message).toContain("its registry public.test has no public address");
    const destinations = new RegistryPolicy(listed).destinations("public.test");
    await expect(destinations.assertNotPrivate(new URL("https://listed.test:5000/"), "token server")).rejects.toThrow(
      "has no public address",
    );
  });
});

describe("credentials", () => {
  const users = "me:secret";
  const basic = `Basic ${Buffer.from(users).toString("base64")}`;
  const withAuthFile = (host: string) => {
    const home = temporaryTree();
    home.write({ "auth.json": { auths: { [host]: { auth: Buffer.from(users).toString("base64") } } } });
    return { authFile: join(home.path, "auth.json"), [Symbol.dispose]: () => home[Symbol.dispose]() };
  };

  it("of a registry, and its token, are not sent to where it redirects", async () => {
    const layer = blobOf(Buffer.from("a layer"));
    const { manifest, config } = imageOf([layer], [layer.digest]);
    for (const scheme of ["Basic", "Bearer"]) {
      await using storage = await startServer(({ url = "" }, response) => answerFrom(url, response, [config], {}));
      await using registry = await startServer(({ url = "", headers: { authorization, host } }, response) => {
        if (url.startsWith("/token")) return void json(response, 200, { token: "for-the-registry" });
        if (authorization === undefined)
          return void json(
            response,
            401,
            {},
            { "www-authenticate": scheme === "Basic" ? "Basic realm=x" : `Bearer realm="http://${host}/token"` },
          );
        if (url.includes("/blobs/")) return void response.writeHead(307, { location: `http://${storage.host}${url}` }).end();
        answerFrom(url, response, [], { latest: manifest });
      });
      using access = withAuthFile(registry.host);
      await failureOf(`${registry.host}/x`, { insecureRegistries: [registry.host, storage.host], authFile: access.authFile });
      expect(registry.requests.map(({ authorization }) => authorization)).toContain(scheme === "Basic" ? basic : "Bearer for-the-registry");
      expect(storage.requests.length).toBeGreaterThan(0);
      expect(storage.requests.filter(({ authorization }) => authorization !== null)).toEqual([]);
    }
  });

  it("of one registry are not sent to another, whatever it asks for", async () => {
    await using other = await startServer((_, response) => json(response, 401, {}, { "www-authenticate": "Basic realm=x" }));
    using access = withAuthFile("registry.test");
    const { message } = await failureOf(`${other.host}/x`, { insecureRegistries: [other.host], authFile: access.authFile });
    expect(message).toContain("wants other credentials");
    expect(other.requests.filter(({ authorization }) => authorization !== null)).toEqual([]);
  });

  it("are not sent to a host to which the registry redirects, if it asks for them", async () => {
    await using storage = await startServer(({ headers }, response) =>
      json(response, 401, { token: "t" }, { "www-authenticate": `Bearer realm="http://${headers.host}/token"` }),
    );
    await using registry = await startServer((_, response) => response.writeHead(307, { location: `http://${storage.host}/` }).end());
    using access = withAuthFile(registry.host);
    await failureOf(`${registry.host}/x`, { insecureRegistries: [registry.host, storage.host], authFile: access.authFile });
    expect(storage.requests.map(({ path, authorization }) => ({ path, authorization }))).toEqual([{ path: "/", authorization: null }]);
  });
});

describe("a failed pull", () => {
  it("tells its owner neither whether the port is open nor what answered there, and tells the operator in the log", async () => {
    const closed = await closedPort();
    await using page = await startServer((_, response) =>
      response.writeHead(404, { "content-type": "text/html" }).end("<h1>vault 1.2</h1>"),
    );
    await using broken = await startServer((_, response) => response.writeHead(500).end("panic: secret"));
    await using document = await startServer((_, response) => response.end("secret: 1"));
    const silent = createServer((socket) => socket.end("220 mail.internal ESMTP\r\n")).listen(0, "127.0.0.1");
    await once(silent, "listening");
    const address = silent.address();
    const other = `127.0.0.1:${typeof address === "object" ? address?.port : ""}`;
    try {
      const hosts = [closed, page.host, broken.host, document.host, other];
      const found = await Promise.all(
        hosts.map(async (host) => ({ host, ...(await failureOf(`${host}/x`, { insecureRegistries: [host] })) })),
      );
      const texts = found.map(({ host, message }) => message.replaceAll(host, "HOST"));
      expect(new Set(texts).size).toBe(1);
      expect(texts[0]).toContain(
        "the image 'HOST/x:latest' could not be pulled: its registry could not be reached, or did not answer as a registry",
      );
      expect(found[0]?.log).toContain("ECONNREFUSED");
      expect(found[1]?.log).toContain("vault 1.2");
    } finally {
      silent.close();
    }
  });

  it("says that the registry does not have the image, or wants credentials, if that is what it answers", async () => {
    const lines: string[] = [];
    for (const code of ["MANIFEST_UNKNOWN", "DENIED", "UNAUTHORIZED"]) {
      await using registry = await startServer((_, response) => json(response, 404, { errors: [{ code, message: "<script>" }] }));
      lines.push(
        (await failureOf(`${registry.host}/x`, { insecureRegistries: [registry.host] })).message.replaceAll(registry.host, "HOST"),
      );
    }
    expect(new Set(lines).size).toBe(1);
    expect(lines[0]).toContain("its registry does not have it, or wants other credentials; if it is in no registry, load it");
  });
});

describe("a registry that sends without end", () => {
  /** Writes until the client goes away; at most 64 MiB, in case it never does. */
  const endless = (response: ServerResponse, sent: { bytes: number }) => {
    const chunk = Buffer.alloc(64 * 1024, " ");
    const write = () => {
      while (sent.bytes < 64 * 2 ** 20 && !response.destroyed) {
        sent.bytes += chunk.length;
        if (!response.write(chunk)) return void response.once("drain", write);
      }
      response.end();
    };
    response.writeHead(200, { "content-type": "application/octet-stream" });
    write();
  };

  // Before: skopeo wrote a blob to the disk until the pull's time had passed.
  it("a blob is cut off at the size in its manifest", async () => {
    const layer = blobOf(Buffer.alloc(1_000));
    const { manifest, config } = imageOf([layer], [layer.digest]);
    const sent = { bytes: 0 };
    await using registry = await startServer(({ url = "" }, response) => {
      if (url.endsWith(layer.digest)) endless(response, sent);
      else answerFrom(url, response, [config], { latest: manifest });
    });
    const { message } = await failureOf(`${registry.host}/x`, { insecureRegistries: [registry.host] });
    expect(message).toContain(`the blob ${layer.digest} is refused: it is larger than 1000 bytes`);
    expect(sent.bytes).toBeLessThan(32 * 2 ** 20);
  });

  it("a manifest, a token and an error are cut off at their limits", async () => {
    for (const part of ["manifest", "token", "error"]) {
      const sent = { bytes: 0 };
      await using registry = await startServer(({ url = "", headers }, response) => {
        if (part === "manifest" || url.startsWith("/token")) return endless(response, sent);
        if (part === "token") return void json(response, 401, {}, { "www-authenticate": `Bearer realm="http://${headers.host}/token"` });
        sent.bytes = 0;
        response.statusCode = 500;
        response.write("x".repeat(128 * 1024));
      });
      const { message } = await failureOf(`${registry.host}/x`, { insecureRegistries: [registry.host] });
      expect(message).toContain(
        part === "manifest" ? "larger than 4194304 bytes" : part === "token" ? "larger than 262144 bytes" : "could not be reached",
      );
      expect(sent.bytes).toBeLessThan(32 * 2 ** 20);
    }
  });

  it("a layer or an image that is too large, or has no size, is refused before anything is downloaded", async () => {
    const small = blobOf(Buffer.from("small"));
    const config = blobOf({});
    const layers = {
      "a layer of 2000000 bytes": [{ ...describeBlob(small), size: 2_000_000 }],
      "its layers have 1800000 bytes": [1, 2].map(() => ({ ...describeBlob(small), size: 900_000 })),
      "it has 6 layers": Array.from({ length: 6 }, () => describeBlob(small)),
      "gives no size": [{ digest: small.digest }, { digest: small.digest, size: -1 }],
    };
    const downloadLimits = { layerBytes: 1_000_000, imageBytes: 1_500_000, layers: 5 };
    for (const [problem, list] of Object.entries(layers)) {
      const manifest = blobOf({ schemaVersion: 2, config: describeBlob(config), layers: list });
      await using registry = await startServer(({ url = "" }, response) => answerFrom(url, response, [], { latest: manifest }));
      expect((await failureOf(`${registry.host}/x`, { insecureRegistries: [registry.host], downloadLimits })).message).toContain(problem);
      expect(registry.requests.filter(({ path }) => path.includes("/blobs/"))).toEqual([]);
    }
  });

  it("a blob is not written to a disk that has less free space than the server keeps", async () => {
    const layer = blobOf(Buffer.from("a layer"));
    const { manifest, config } = imageOf([layer], [layer.digest]);
    await using registry = await startServer(({ url = "" }, response) => answerFrom(url, response, [config, layer], { latest: manifest }));
    const options = { insecureRegistries: [registry.host], unpackLimits: { freeDiskBytes: 2 ** 52 } };
    expect((await failureOf(`${registry.host}/x`, options)).message).toContain("the disk of the server has less than");
  });

  it("redirects and indexes without end are refused", async () => {
    await using circle = await startServer(({ url = "" }, response) => response.writeHead(302, { location: url }).end());
    const { log } = await failureOf(`${circle.host}/x`, { insecureRegistries: [circle.host] });
    expect(log).toContain("redirects more than 5 times");
    expect(circle.requests.length).toBeLessThan(25);
    const nested = [blobOf({ schemaVersion: 2, layers: [] })];
    for (let depth = 0; depth < 10; depth++)
      nested.unshift(blobOf({ schemaVersion: 2, manifests: [describeBlob(nested[0] as (typeof nested)[0])] }));
    await using deep = await startServer(({ url = "" }, response) =>
      answerFrom(url, response, nested, { latest: nested[0] as (typeof nested)[0] }),
    );
    expect((await failureOf(`${deep.host}/x`, { insecureRegistries: [deep.host] })).message).toContain("nested more than 4 times");
  });
});

describe("content that is not what its digest says", () => {
  it("is refused as a manifest and as a blob", async () => {
    const layer = blobOf(Buffer.from("a layer"));
    const { manifest, config } = imageOf([layer], [layer.digest]);
    await using registry = await startServer(({ url = "" }, response) => {
      if (url.includes("/blobs/")) return void response.end(url.endsWith(layer.digest) ? "A LAYER" : config.bytes);
      answerFrom(url, response, [], { latest: manifest, [layer.digest]: manifest });
    });
    const access = { insecureRegistries: [registry.host] };
    expect((await failureOf(`${registry.host}/x`, access)).message).toContain(`as ${layer.digest}`);
    expect((await failureOf(`${registry.host}/x@${layer.digest}`, access)).message).toContain(
      `its registry has the content ${manifest.digest} as ${layer.digest}`,
    );
  });

  it("is refused if it is an index and an image at the same time, or JSON of 100,000 levels", async () => {
    const both = blobOf({ schemaVersion: 2, manifests: [], layers: [] });
    const deep = Buffer.from("[".repeat(100_000));
    await using registry = await startServer(({ url = "" }, response) =>
      url.includes("deep") ? response.end(deep) : answerFrom(url, response, [], { latest: both }),
    );
    const access = { insecureRegistries: [registry.host] };
    expect((await failureOf(`${registry.host}/x`, access)).message).toContain("an index and an image at the same time");
    expect((await failureOf(`${registry.host}/deep`, access)).message).toContain("did not answer as a registry");
  });
});
