import { describe, expect, it } from "vitest";
import { bundleOf, chunked } from "../fixtures/archives.ts";
import { ada, bob, openTestHub, root, stores, tim } from "../fixtures/hub.ts";

describe.each(stores)("removing, with the store in %s", (store) => {
  it("deletes one version and keeps the others", async () => {
    const { hub, push } = openTestHub(store);
    for (const version of ["1.0.0", "1.1.0"]) await push(ada, "a", version);
    expect(await hub.remove("a", "1.1.0", ada)).toEqual(["1.1.0"]);
    expect(await hub.exists("a", "1.1.0", ada)).toEqual({ exists: false });
    expect((await hub.resolve("a", ada)).version).toBe("1.0.0");
    expect((await hub.list({}, root)).total).toBe(1);
    await expect(hub.remove("a", "1.1.0", ada)).rejects.toMatchObject({ code: "environment.not_found" });
  });

  it("needs an administrator for a released version", async () => {
    const { hub, push } = openTestHub(store);
    await push(ada, "a", "1.0.0");
    await hub.release("a", "1.0.0", ada);
    await expect(hub.remove("a", "1.0.0", ada)).rejects.toMatchObject({ code: "environment.released" });
    expect(await hub.remove("a", "1.0.0", root)).toEqual(["1.0.0"]);
  });

  it("is refused while instances run, even for an administrator", async () => {
    const { hub, push, world } = openTestHub(store);
    await push(ada, "a", "1.0.0");
    world.inUse.add("a@1.0.0");
    for (const caller of [ada, root]) {
      await expect(hub.remove("a", "1.0.0", caller)).rejects.toMatchObject({
        code: "environment.in_use",
        message: expect.stringContaining("delete them first"),
      });
    }
    expect((await hub.get("a", "1.0.0", ada)).status).toBe("Verified");
    world.inUse.clear();
    await hub.remove("a", "1.0.0", ada);
  });

  it("deletes all versions of a name, or none", async () => {
    const { hub, push, world } = openTestHub(store);
    const versions = ["1.0.0", "1.1.0", "1.2.0"];
    for (const version of versions) await push(ada, "a", version);
    world.inUse.add("a@1.1.0");
    await expect(hub.remove("a", null, ada)).rejects.toMatchObject({ code: "environment.in_use" });
    world.inUse.clear();
    await hub.release("a", "1.2.0", ada);
    await expect(hub.remove("a", null, ada)).rejects.toMatchObject({ code: "environment.released" });
    expect(await hub.versions("a", ada)).toHaveLength(3);
    expect((await hub.remove("a", null, root)).sort()).toEqual(versions);
    await expect(hub.versions("a", root)).rejects.toMatchObject({ code: "environment.not_found" });
  });

  it("rolls back if a version changes while a name is deleted", async () => {
    let interfere = async () => {};
    const isInUse = async (_: string, version: string) => {
      if (version === "1.2.0") await interfere();
      return false;
    };
    const { hub, push } = openTestHub(store, { isInUse });
    for (const version of ["1.0.0", "1.1.0", "1.2.0"]) await push(ada, "a", version);
    interfere = async () => void (await hub.setStatus("a", "1.1.0", "Testing", ada));
    await expect(hub.remove("a", null, ada)).rejects.toMatchObject({ code: "request.conflict", retryable: true });
    expect((await hub.versions("a", ada)).map(({ version, status }) => [version, status])).toEqual([
      ["1.2.0", "Verified"],
      ["1.1.0", "Testing"],
      ["1.0.0", "Verified"],
    ]);
    interfere = async () => {};
    expect(await hub.remove("a", null, ada)).toHaveLength(3);
  });

  it("frees a version number that was not released, and continues its history", async () => {
    const { hub, push } = openTestHub(store);
    await push(ada, "a", "1.0.0");
    await hub.remove("a", "1.0.0", ada);
    expect((await push(ada, "a", "1.0.0", {}, "other()")).isNew).toBe(true);
    const [{ history = [] } = {}] = await hub.versions("a", ada);
    expect(history.map(({ what }) => what)).toEqual(["published", "verified", "removed", "published", "verified"]);
  });

  it("never reuses a released version number for other content, but accepts identical content", async () => {
    const { hub, push } = openTestHub(store);
    await push(ada, "a", "1.0.0");
    await hub.release("a", "1.0.0", ada);
    await hub.remove("a", "1.0.0", root);
    await expect(push(ada, "a", "1.0.0", {}, "other()")).rejects.toMatchObject({
      code: "environment.exists",
      message: expect.stringContaining("raise the version"),
    });
    expect((await push(ada, "a", "1.0.0")).isNew).toBe(true);
  });

  it("keeps the owner of the name, so that no other owner can take it over", async () => {
    const { hub, push } = openTestHub(store);
    await push(ada, "a", "1.0.0");
    await hub.remove("a", null, ada);
    await expect(push(bob, "a", "2.0.0")).rejects.toMatchObject({ code: "access.denied" });
    await push(ada, "a", "2.0.0");
  });

  it("lets exactly one of two concurrent removals succeed", async () => {
    const { hub, push } = openTestHub(store);
    await push(ada, "a", "1.0.0");
    const settled = await Promise.allSettled([hub.remove("a", "1.0.0", ada), hub.remove("a", "1.0.0", ada)]);
    expect(settled.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
  });

  it("frees the publisher's quota once none of their versions uses the archive", async () => {
    const { hub, push, blobs } = openTestHub(store);
    const { environment } = await push(ada, "a", "1.0.0");
    const used = await blobs.ownership.usedBy("ada");
    const artifacts = environment.artifacts;
    expect(used).toBeGreaterThan(0);
    await expect(hub.publish({ name: "b", version: "1.0.0", artifacts }, ada)).rejects.toThrow("build it again");
    await hub.remove("a", "1.0.0", ada);
    expect(await blobs.ownership.usedBy("ada")).toBe(0);
  });
});

describe("collecting", () => {
  const HOURS = 3_600_000;

  it("deletes the archives and folders of removed versions, and nothing that is published", async () => {
    const { hub, push, blobs, bundles, later } = openTestHub();
    const gone = (await push(ada, "a", "1.0.0")).environment.bundleDigest as string;
    const kept = (await push(ada, "b", "1.0.0")).environment.bundleDigest as string;
    await hub.remove("a", "1.0.0", ada);
    later(2 * HOURS);
    expect(await hub.collect()).toEqual(new Set([gone]));
    await expect(hub.bundleFolder(gone)).rejects.toMatchObject({ code: "bundle.not_found" });
    expect(await hub.bundleFolder(kept)).toBe(await bundles.folder(kept));
    expect(await blobs.find(kept)).not.toBeNull();
    expect((await hub.get("b", "1.0.0", ada)).metadata).not.toBeNull();
  });

  it("keeps an upload for some time before it is published", async () => {
    const { hub, later, blobs } = openTestHub();
    const { digest, bytes } = bundleOf({ "main.js": "x" });
    await hub.transfers.upload(digest, chunked(bytes), ada);
    later(0.5 * HOURS);
    expect(await hub.collect()).toEqual(new Set());
    await hub.publish({ name: "demo", version: "1.0.0", artifacts: [{ type: "bundle", content: digest }] }, ada);
    later(5 * HOURS);
    expect(await hub.collect()).toEqual(new Set());
    await hub.remove("demo", null, ada);
    await hub.collect();
    expect(await blobs.find(digest)).toBeNull();
  });

  it("deletes removed versions after a month, but keeps released numbers reserved", async () => {
    const { hub, push, later, store } = openTestHub();
    for (const version of ["1.0.0", "2.0.0"]) await push(ada, "a", version);
    await hub.release("a", "2.0.0", ada);
    await hub.remove("a", null, root);
    later(31 * 24 * HOURS);
    await hub.collect();
    expect((await store.list<{ version: string }>("environment", { limit: 9 })).map(({ value }) => value.version)).toEqual(["2.0.0"]);
    await expect(push(ada, "a", "2.0.0", {}, "other()")).rejects.toMatchObject({ code: "environment.exists" });
  });

  it("deletes the contents of publications that lost a race, and keeps those that won", async () => {
    const { hub, push, later, store } = openTestHub();
    await Promise.allSettled(Array.from({ length: 6 }, (_, at) => push(ada, "race", "1.0.0", {}, `run(${at})`)));
    const contents = async () => (await store.list("environment-content", { limit: 100 })).length;
    expect(await contents()).toBeGreaterThan(1);
    later(2 * HOURS);
    await hub.collect();
    expect(await contents()).toBe(1);
    expect((await hub.get("race", "1.0.0", ada)).version).toBe("1.0.0");
    await expect(hub.get("race", "1.0.0", tim)).rejects.toMatchObject({ code: "environment.not_found" });
  });
});
