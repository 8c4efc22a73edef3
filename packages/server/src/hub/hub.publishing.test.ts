import { readFileSync } from "node:fs";
import { join } from "node:path";
import { PlatformError } from "@aenv/contract";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { bundleOf, chunked } from "./fixtures/archives.ts";
import { ada, bob, metadata, openTestHub, root, stores, tim } from "./fixtures/hub.ts";
import type { InspectOptions } from "./publishing/publisher.ts";

describe.each(stores)("publishing, with the store in %s", (store) => {
  it("stores the request, the metadata of the started environment, the publisher and the time", async () => {
    const { hub, push, world } = openTestHub(store);
    const fields = { description: "a shop", tags: ["web"], deployConfig: { ttl: "1h", custom: { deep: [1] } }, unknown: "kept" };
    const { environment, isNew } = await push(ada, "shop", "1.0.0", fields);
    expect(isNew).toBe(true);
    expect(environment).toMatchObject({
      name: "shop",
      version: "1.0.0",
      description: "a shop",
      tags: ["web"],
      status: "Verified",
      publisher: "ada",
      visibility: "private",
      metadata,
      createdAt: "2026-01-12T03:25:46.000Z",
      config: { name: "shop", deployConfig: { custom: { deep: [1] } }, unknown: "kept" },
      bundleDigest: expect.stringMatching(/^sha256:/),
      contentDigest: expect.stringMatching(/^sha256:/),
    });
    expect(world.inspected).toEqual([await hub.bundleFolder(environment.bundleDigest as string)]);
    expect(await hub.get("shop", "1.0.0", ada)).toEqual(environment);
    expect(readFileSync(join(world.inspected[0] as string, "main.js"), "utf8")).toBe("run()");
  });

  it("refuses a deployConfig.warm above the limit, and names the limit", async () => {
    const { hub, push } = openTestHub(store, { maxWarm: 8 });
    await expect(push(ada, "shop", "1.0.0", { deployConfig: { warm: 9 } })).rejects.toMatchObject({
      code: "environment.invalid",
      message: expect.stringContaining("deployConfig.warm is 9; this server keeps at most 8"),
    });
    expect(await hub.exists("shop", "1.0.0", ada)).toEqual({ exists: false });
    await push(ada, "shop", "1.0.0", { deployConfig: { warm: 8 } });
  });

  it("tells whether a version is newest, superseded or gone, whatever its visibility", async () => {
    const { hub, push } = openTestHub(store);
    await push(ada, "shop", "1.0.0");
    expect(await hub.recencyOf("shop", "1.0.0")).toBe("newest");
    await push(ada, "shop", "1.1.0");
    expect(await hub.recencyOf("shop", "1.0.0")).toBe("superseded");
    await hub.remove("shop", "1.1.0", ada);
    expect(await hub.recencyOf("shop", "1.0.0")).toBe("newest");
    expect(await hub.recencyOf("shop", "1.1.0")).toBe("gone");
    expect(await hub.recencyOf("nothing", "1.0.0")).toBe("gone");
  });

  it("verifies a version with the variables of its instances", async () => {
    const given: unknown[] = [];
    const inspect = async (_: string, { owner, variables }: InspectOptions) => {
      given.push({ owner, variables });
      return metadata;
    };
    const { push } = openTestHub(store, { inspect });
    await push(ada, "shop", "1.0.0", { deployConfig: { environment_variables: { REGION: "north" } } });
    expect(given).toEqual([{ owner: "ada", variables: { REGION: "north", envNAME: "shop", envversion: "1.0.0" } }]);
  });

  it("publishes nothing if the client disconnects before the version is verified", async () => {
    const client = new AbortController();
    const left = new PlatformError("request.cancelled", "the client went away");
    const inspect = async (_: string, { signal }: InspectOptions) => {
      client.abort(left);
      signal?.throwIfAborted();
      return metadata;
    };
    const { hub, push } = openTestHub(store, { inspect });
    await expect(push(ada, "shop", "1.0.0", {}, "run()", client.signal)).rejects.toBe(left);
    await expect(hub.get("shop", "1.0.0", ada)).rejects.toMatchObject({ code: "environment.not_found" });
  });

  it("passes on Retry-After if a verification waits too long", async () => {
    const busy = new PlatformError("quota.exceeded", "the server is busy", { details: { retryAfterSeconds: 7 } });
    const { push } = openTestHub(store, { inspect: () => Promise.reject(busy) });
    await expect(push(ada, "shop", "1.0.0")).rejects.toMatchObject({ code: "quota.exceeded", details: { retryAfterSeconds: 7 } });
  });

  it("accepts what the original's client sends, including nulls", async () => {
    const { hub } = openTestHub(store);
    const body = {
      name: "weather-demo",
      version: "1.0.0",
      tags: null,
      status: "ready",
      codeUrl: "~/x.zip",
      artifacts: [{ type: "image", content: "docker.io/aenv/w:1" }],
    };
    const { environment } = await hub.publish({ ...body, buildConfig: { dockerfile: "./Dockerfile" }, testConfig: null }, ada);
    expect(environment).toMatchObject({
      status: "Ready",
      metadata: null,
      bundleDigest: null,
      tags: [],
      artifacts: [{ id: "", type: "image", content: "docker.io/aenv/w:1" }],
    });
  });

  it("is a no-op for identical content, in any order of its fields", async () => {
    const { hub, world, later } = openTestHub(store);
    const first = await hub.publish({ name: "a", version: "1.0.0", tags: ["x"], deployConfig: { ttl: "1h", cpu: "1" } }, ada);
    later();
    const again = await hub.publish(
      { deployConfig: { cpu: "1", ttl: "1h" }, tags: ["x"], version: "1.0.0", name: "a", status: "Failed" },
      ada,
    );
    expect(again).toEqual({ environment: first.environment, isNew: false });
    expect(world.inspected).toEqual([]);
  });

  it("refuses different content for the same version, and says to raise the version", async () => {
    const { hub, push } = openTestHub(store);
    await push(ada, "a", "1.0.0");
    const attempts = [
      () => push(ada, "a", "1.0.0", {}, "other()"),
      () => push(ada, "a", "1.0.0", { tags: ["new"] }),
      () => hub.publish({ name: "a", version: "1.0.0" }, ada),
    ];
    for (const attempt of attempts) {
      await expect(attempt()).rejects.toMatchObject({ code: "environment.exists", message: expect.stringContaining("raise the version") });
    }
    await expect(push(root, "a", "1.0.0", {}, "other()")).rejects.toMatchObject({ code: "environment.exists" });
  });

  it("lets exactly one of many concurrent publications of different content succeed", async () => {
    const { hub, push } = openTestHub(store);
    const settled = await Promise.allSettled(Array.from({ length: 12 }, (_, at) => push(ada, "race", "1.0.0", {}, `run(${at})`)));
    const won = settled.flatMap((one) => (one.status === "fulfilled" ? one.value : []));
    expect(won).toHaveLength(1);
    for (const one of settled) if (one.status === "rejected") expect(one.reason).toMatchObject({ code: "environment.exists" });
    expect((await hub.get("race", "1.0.0", ada)).contentDigest).toBe(won[0]?.environment.contentDigest);
  });

  it("gives concurrent publications of identical content the same result, new for exactly one", async () => {
    const { push, hub } = openTestHub(store);
    const all = await Promise.all(Array.from({ length: 8 }, () => push(ada, "same", "1.0.0")));
    expect(all.filter(({ isNew }) => isNew)).toHaveLength(1);
    expect(new Set(all.map(({ environment }) => environment.contentDigest)).size).toBe(1);
    const [{ history = [] } = {}] = await hub.versions("same", ada);
    expect(history.map(({ what }) => what)).toEqual(["published", "verified"]);
  });

  it("gives a name to exactly one of two concurrent publishers", async () => {
    const { push } = openTestHub(store);
    const settled = await Promise.allSettled([push(ada, "name", "1.0.0"), push(bob, "name", "2.0.0")]);
    expect(settled.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
  });

  it("distinguishes names and versions that the original confuses", async () => {
    const { hub } = openTestHub(store);
    await hub.publish({ name: "a-1", version: "2" }, ada);
    await hub.publish({ name: "a", version: "1-2" }, ada);
    expect((await hub.get("a", "1-2", ada)).name).toBe("a");
    expect((await hub.get("a-1", "2", ada)).name).toBe("a-1");
  });

  it("leaves nothing behind if the environment does not start, and gives the reason", async () => {
    const inspect = async () => {
      throw new Error("SyntaxError in main.js:3");
    };
    const { hub, push } = openTestHub(store, { inspect });
    await expect(push(ada, "broken", "1.0.0")).rejects.toMatchObject({
      code: "environment.invalid",
      message: "broken@1.0.0 was not published because it could not be started: SyntaxError in main.js:3",
    });
    expect(await hub.exists("broken", "1.0.0", ada)).toEqual({ exists: false });
    expect((await hub.publish({ name: "broken", version: "2.0.0" }, bob)).environment.owner).toBe("bob");
  });

  it("reports an error of the server, not of the environment, if it could not be started at all", async () => {
    const inspect = async () => {
      throw new PlatformError("sandbox.start_failed", "no process could be made");
    };
    await expect(openTestHub(store, { inspect }).push(ada, "a", "1.0.0")).rejects.toMatchObject({
      code: "sandbox.start_failed",
      retryable: true,
    });
  });

  it("skips verification if requested, and verifies when published again", async () => {
    const { hub, world } = openTestHub(store);
    const { digest, bytes } = bundleOf({ "main.js": "x" }, { name: "a" });
    await hub.transfers.upload(digest, chunked(bytes), ada);
    const upsert = { name: "a", version: "1.0.0", artifacts: [{ type: "bundle", content: digest }] };
    expect((await hub.publish(upsert, ada, { verify: false })).environment).toMatchObject({ metadata: null, status: "Init" });
    expect(world.inspected).toEqual([]);
    expect((await hub.publish(upsert, ada)).environment).toMatchObject({ metadata, status: "Verified" });
    await hub.publish(upsert, ada);
    expect(world.inspected).toHaveLength(1);
    expect((await hub.versions("a", ada))[0]?.history.map(({ what }) => what)).toEqual(["published", "verified"]);
  });

  it("refuses a bundle that was not uploaded, belongs to another owner or environment, or is unsafe", async () => {
    const { hub } = openTestHub(store);
    const publish = (digest: string, caller = ada) =>
      hub.publish({ name: "demo", version: "1.0.0", artifacts: [{ type: "bundle", content: digest }] }, caller, { verify: false });
    const mine = bundleOf({ "main.js": "x" });
    await expect(publish(mine.digest)).rejects.toMatchObject({
      code: "bundle.not_found",
      message: expect.stringContaining("upload it first"),
    });
    await hub.transfers.upload(mine.digest, chunked(mine.bytes), bob);
    await expect(publish(mine.digest)).rejects.toMatchObject({ code: "bundle.not_found" });
    const other = bundleOf({ "main.js": "x" }, { name: "other" });
    await hub.transfers.upload(other.digest, chunked(other.bytes), ada);
    await expect(publish(other.digest)).rejects.toThrow("the bundle contains other@1.0.0, not demo@1.0.0");
    const evil = bundleOf({ "main.js": "x" }, { extra: [{ path: "../../evil", bytes: "x" }] });
    await hub.transfers.upload(evil.digest, chunked(evil.bytes), ada);
    await expect(publish(evil.digest)).rejects.toMatchObject({ code: "bundle.invalid" });
    expect((await hub.list({}, root)).total).toBe(0);
    await expect(publish(mine.digest, bob)).resolves.toMatchObject({ isNew: true });
  });

  it("stores dependencies that the publisher can resolve", async () => {
    const { hub } = openTestHub(store);
    await hub.publish({ name: "search", version: "1.4.0", visibility: "public" }, bob);
    await hub.publish({ name: "secret", version: "1.0.0" }, bob);
    const { environment } = await hub.publish({ name: "a", version: "1.0.0", dependencies: ["search@^1.2"] }, ada);
    expect(environment.dependencies).toEqual(["search@^1.2"]);
    await expect(hub.publish({ name: "a", version: "1.0.1", dependencies: ["search@^2"] }, ada)).rejects.toThrow(
      "which cannot be resolved",
    );
    await expect(hub.publish({ name: "a", version: "1.0.1", dependencies: ["secret"] }, ada)).rejects.toThrow("Environment not found");
    await expect(hub.publish({ name: "a", version: "1.0.1", dependencies: ["a@1.0.0"] }, ada)).rejects.toThrow("cannot depend on itself");
  });
});

describe("a publication", () => {
  it.each(["", "A", "../x", "a/b", "a@b", "-a", "a-", "a b", "ä", "a\n", "a".repeat(254), "."])(
    "is refused for the name %j",
    async (name) => {
      await expect(openTestHub().hub.publish({ name, version: "1.0.0" }, ada)).rejects.toMatchObject({ code: "environment.invalid" });
    },
  );

  it.each(["", "..", "../1", "1/2", "1@2", "latest", " 1", "1\n", "-1", "1".repeat(129), "1%2f", "\u0000"])(
    "is no version like %j",
    async (version) => {
      await expect(openTestHub().hub.publish({ name: "a", version }, ada)).rejects.toMatchObject({
        code: expect.stringMatching(/invalid/),
      });
    },
  );

  it("is refused if it is not a valid config", async () => {
    const { hub } = openTestHub();
    for (const upsert of [null, undefined, [], "x", 1, {}, { name: 1, version: 2 }, { name: "a" }]) {
      await expect(hub.publish(upsert, ada)).rejects.toMatchObject({ code: expect.stringMatching(/invalid/) });
    }
    const bad = [
      { status: "Done" },
      { visibility: "hidden" },
      { sharedWith: "bob" },
      { sharedWith: [""] },
      { dependencies: ["../x"] },
      { artifacts: [{ type: "bundle", content: "x" }] },
    ];
    for (const fields of bad)
      await expect(hub.publish({ name: "a", version: "1", ...fields }, ada)).rejects.toMatchObject({
        code: expect.stringMatching(/invalid/),
      });
    const digest = `sha256:${"a".repeat(64)}`;
    const twice = [
      { type: "bundle", content: digest },
      { type: "bundle", content: digest },
    ];
    await expect(hub.publish({ name: "a", version: "1", artifacts: twice }, ada)).rejects.toThrow("two bundles");
    await expect(hub.publish({ name: "a", version: "1", x: "y".repeat(2 ** 21) }, ada)).rejects.toThrow("too large");
    expect((await hub.list({}, root)).total).toBe(0);
  });

  it("stores any JSON as it was sent, or is refused as invalid", async () => {
    const { hub } = openTestHub();
    const fields = [
      "description",
      "tags",
      "status",
      "artifacts",
      "visibility",
      "sharedWith",
      "dependencies",
      "deployConfig",
      "__proto__",
      "x",
    ];
    let at = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.dictionary(fc.constantFrom(...fields), fc.jsonValue(), { noNullPrototype: true }),
        fc.jsonValue(),
        async (given, whole) => {
          await expect(hub.publish(whole, ada)).rejects.toMatchObject({ code: expect.stringMatching(/^(request|environment)\.invalid$/) });
          at += 1;
          const upsert = JSON.parse(JSON.stringify({ ...given, name: "garbage", version: `1.0.${at}` }));
          const published = await hub.publish(upsert, ada).catch((error) => {
            expect(error).toMatchObject({ code: expect.stringMatching(/^(request|environment)\.invalid$/) });
            return null;
          });
          if (published === null) return;
          expect((await hub.publish(upsert, ada)).isNew).toBe(false);
          expect((await hub.update("garbage", `1.0.${at}`, upsert, ada)).contentDigest).toBe(published.environment.contentDigest);
          if ("x" in upsert && upsert.x !== null) expect(published.environment.config.x).toEqual(upsert.x);
        },
      ),
    );
  });

  it("counts configs and artifacts against the owner's quota until it is removed", async () => {
    const { hub } = openTestHub("memory", { quotaBytes: 100_000 });
    const publish = (version: string, fields: object) => hub.publish({ name: "big", version, ...fields }, ada);
    const artifacts = Array.from({ length: 10 }, (_, n) => ({ type: "image", content: `${n}${"x".repeat(4_000)}` }));
    await publish("1.0.0", { artifacts });
    await publish("1.0.0", { artifacts });
    await publish("1.0.1", { codeUrl: "x".repeat(40_000) });
    await expect(publish("1.0.2", { artifacts })).rejects.toMatchObject({ code: "quota.exceeded", details: { owner: "ada" } });
    await hub.remove("big", "1.0.0", ada);
    await publish("1.0.2", { artifacts });
    await hub.publish({ name: "other", version: "1.0.0", artifacts }, bob);
  });

  it("is refused with too large or too many artifacts", async () => {
    const { hub } = openTestHub();
    const publish = (artifacts: object[]) => hub.publish({ name: "big", version: "1.0.0", artifacts }, ada);
    for (const artifacts of [[{ type: "image", content: "x".repeat(4_097) }], Array(101).fill({ type: "image", content: "x" })])
      await expect(publish(artifacts)).rejects.toMatchObject({ code: "environment.invalid", details: { field: "artifacts" } });
    const sharedWith = Array.from({ length: 201 }, (_, n) => `owner-${n}`);
    await expect(hub.publish({ name: "big", version: "1.0.0", sharedWith }, ada)).rejects.toThrow(/at most 200 owners/);
  });

  it("is refused with too long searchable fields, or above the limit of versions", async () => {
    const { hub } = openTestHub("memory", { maxVersions: 3 });
    await expect(hub.publish({ name: "a", version: "1", description: "x".repeat(10_001) }, ada)).rejects.toThrow("description is too long");
    await expect(hub.publish({ name: "a", version: "1", tags: ["x".repeat(101)] }, ada)).rejects.toThrow("tags are too many or too long");
    for (const version of ["1", "2", "3"]) await hub.publish({ name: "a", version }, ada);
    await hub.remove("a", "1", ada);
    await expect(hub.publish({ name: "a", version: "4" }, ada)).rejects.toMatchObject({
      code: "quota.exceeded",
      details: { maxVersions: 3 },
    });
    expect((await hub.publish({ name: "a", version: "1" }, ada)).isNew).toBe(true);
    await hub.publish({ name: "b", version: "4" }, bob);
  });

  it("needs the role publisher, and a name without another owner", async () => {
    const { hub } = openTestHub();
    await expect(hub.publish({ name: "a", version: "1.0.0" }, tim)).rejects.toMatchObject({ code: "access.denied" });
    await hub.publish({ name: "a", version: "1.0.0", visibility: "public" }, ada);
    await expect(hub.publish({ name: "a", version: "1.1.0" }, bob)).rejects.toMatchObject({
      code: "access.denied",
      message: expect.not.stringContaining("ada"),
    });
    await expect(hub.publish({ name: "a", version: "1.0.0" }, bob)).rejects.toMatchObject({ code: "access.denied" });
    expect((await hub.publish({ name: "a", version: "1.2.0" }, root)).environment).toMatchObject({ owner: "ada", publisher: "root" });
    expect((await hub.get("a", "1.2.0", ada)).version).toBe("1.2.0");
  });
});
