import { describe, expect, it } from "vitest";
import { ada, bob, callerOf, openTestHub, root, stores, tim } from "./fixtures/hub.ts";

describe.each(stores)("finding, with the store in %s", (store) => {
  async function catalog() {
    const opened = openTestHub(store);
    const { hub, later } = opened;
    for (const [name, version, fields] of [
      ["tau2", "1.0.0", { visibility: "public", tags: ["bench"], description: "Customer service" }],
      ["tau2", "1.10.0", {}],
      ["tau2", "1.9.0", {}],
      ["tau2", "2.0.0-rc.1", {}],
      ["tau2", "nightly", {}],
      ["alpha", "0.1.0", { visibility: "public", tags: ["web"] }],
      ["mine", "1.0.0", {}],
      ["team", "1.0.0", { sharedWith: ["tim"] }],
    ] as const) {
      await hub.publish({ name, version, ...fields }, ada);
      later();
    }
    return opened;
  }

  it("resolves a bare name to the highest stable version, and a range to the highest match", async () => {
    const { hub } = await catalog();
    const found = async (ref: string) => (await hub.resolve(ref, tim)).version;
    expect(await found("tau2")).toBe("1.10.0");
    expect(await found("tau2@latest")).toBe("1.10.0");
    expect(await found("tau2@^1.0")).toBe("1.10.0");
    expect(await found("tau2@~1.9")).toBe("1.9.0");
    expect(await found("tau2@1.0.0")).toBe("1.0.0");
    expect(await found("tau2@nightly")).toBe("nightly");
    expect(await found("tau2@^2")).toBe("2.0.0-rc.1");
  });

  it("skips a failed version unless it is named exactly", async () => {
    const { hub } = await catalog();
    await hub.setStatus("tau2", "1.10.0", "failed", ada);
    expect((await hub.resolve("tau2", tim)).version).toBe("1.9.0");
    expect((await hub.resolve("tau2@1.10.0", tim)).version).toBe("1.10.0");
  });

  it("lists the available versions if one is not found", async () => {
    const { hub } = await catalog();
    await expect(hub.resolve("tau2@3.0.0", tim)).rejects.toThrow("'tau2@3.0.0'; available: 2.0.0-rc.1, 1.10.0, 1.9.0, 1.0.0, nightly");
    await expect(hub.resolve("nope", tim)).rejects.toMatchObject({
      code: "environment.not_found",
      message: "Environment not found: 'nope'",
    });
    for (const ref of ["", "@", "tau2@", "@1", "a@1@2", "../x", "TAU2", "a b@1"]) {
      await expect(hub.resolve(ref, tim)).rejects.toMatchObject({ code: "request.invalid" });
    }
    await expect(hub.resolve("tau2@not a range", tim)).rejects.toMatchObject({ code: "environment.not_found" });
  });

  it("lists pages by name and newest first, with the correct total", async () => {
    const { hub } = await catalog();
    const refs = async (query: object, caller = ada) => {
      const { items, total } = await hub.list(query, caller);
      return [...items.map(({ name, version }) => `${name}@${version}`), total];
    };
    expect(await refs({})).toEqual([
      "alpha@0.1.0",
      "mine@1.0.0",
      "tau2@2.0.0-rc.1",
      "tau2@1.10.0",
      "tau2@1.9.0",
      "tau2@1.0.0",
      "tau2@nightly",
      "team@1.0.0",
      8,
    ]);
    expect(await refs({ offset: 1, limit: 2 })).toEqual(["mine@1.0.0", "tau2@2.0.0-rc.1", 8]);
    expect(await refs({ offset: 100 })).toEqual([8]);
    expect(await refs({ tag: "bench" })).toEqual(["tau2@1.0.0", 1]);
    expect(await refs({ tag: ["bench", "web"] })).toEqual([0]);
    expect(await refs({ query: "SERVICE tau" })).toEqual(["tau2@1.0.0", 1]);
    expect(await refs({ query: "web" })).toEqual(["alpha@0.1.0", 1]);
    expect(await refs({ name: "tau2", limit: 1 })).toEqual(["tau2@2.0.0-rc.1", 5]);
    expect(await refs({ name: "tau" })).toEqual([0]);
    for (const bad of [{ offset: -1 }, { limit: 0 }, { limit: 1_001 }, { offset: 0.5 }, { limit: Number.NaN }]) {
      await expect(hub.list(bad, ada)).rejects.toMatchObject({ code: "request.invalid" });
    }
  });

  it("finds and counts only what the caller may see", async () => {
    const { hub } = await catalog();
    const names = async (caller = tim) => new Set((await hub.list({}, caller)).items.map(({ name }) => name));
    expect(await names(bob)).toEqual(new Set(["alpha", "tau2"]));
    expect(await names(tim)).toEqual(new Set(["alpha", "tau2", "team"]));
    expect(await names(root)).toEqual(new Set(["alpha", "mine", "tau2", "team"]));
    expect((await hub.list({}, bob)).total).toBe(6);
  });

  it("returns each version's history, newest version first", async () => {
    const { hub, later } = await catalog();
    await hub.setStatus("tau2", "1.9.0", "Testing", ada);
    later();
    await hub.release("tau2", "1.9.0", root);
    const versions = await hub.versions("tau2", tim);
    expect(versions.map(({ version }) => version)).toEqual(["2.0.0-rc.1", "1.10.0", "1.9.0", "1.0.0", "nightly"]);
    expect(versions[2]?.history.map(({ what, by, detail }) => [what, by, detail])).toEqual([
      ["published", "ada", versions[2]?.contentDigest],
      ["status", "ada", "Testing"],
      ["released", "root", "Released"],
    ]);
    expect(versions[2]?.updatedAt).toBe(versions[2]?.history[2]?.at);
  });

  it("gives a new version the visibility of the previous one by default", async () => {
    const { hub } = await catalog();
    expect((await hub.publish({ name: "team", version: "1.1.0" }, ada)).environment).toMatchObject({
      visibility: "shared",
      sharedWith: ["tim"],
    });
    expect((await hub.publish({ name: "team", version: "1.2.0", visibility: "private" }, ada)).environment).toMatchObject({
      visibility: "private",
      sharedWith: [],
    });
  });
});

describe("a version that the caller may not see", () => {
  it("is reported as not found by every method, like one that never existed", async () => {
    const { hub } = openTestHub();
    await hub.publish({ name: "mine", version: "1.0.0" }, ada);
    const asks = (name: string, version: string, caller = bob): [string, () => Promise<unknown>][] => [
      ["get", () => hub.get(name, version, caller)],
      ["status", () => hub.status(name, version, caller)],
      ["versions", () => hub.versions(name, caller)],
      ["resolve", () => hub.resolve(name, caller)],
      ["resolve exactly", () => hub.resolve(`${name}@${version}`, caller)],
      ["update", () => hub.update(name, version, { status: "Ready" }, caller)],
      ["release", () => hub.release(name, version, caller)],
      ["setStatus", () => hub.setStatus(name, version, "Ready", caller)],
      ["setVisibility", () => hub.setVisibility(name, version, { visibility: "public" }, caller)],
      ["remove", () => hub.remove(name, version, caller)],
      ["remove all", () => hub.remove(name, null, caller)],
      ["download", () => hub.transfers.download(name, version, caller)],
      ["sign for download", () => hub.transfers.sign(name, version, "download", caller)],
    ];
    for (const caller of [bob, tim, callerOf("eve")]) {
      const never = asks("nope", "1.0.0", caller);
      for (const [at, [method, ask]] of asks("mine", "1.0.0", caller).entries()) {
        const refused = await ask().catch((error) => error);
        const unknown = await never[at]?.[1]().catch((error) => error);
        expect(refused, method).toMatchObject({ code: "environment.not_found" });
        expect(String(refused).replaceAll("mine", "nope"), method).toBe(String(unknown));
      }
      expect(await hub.exists("mine", "1.0.0", caller)).toEqual({ exists: false });
    }
    expect(await hub.exists("mine", "1.0.0", ada)).toEqual({ exists: true, status: "Init" });
    expect((await hub.get("mine", "1.0.0", root)).publisher).toBe("ada");
  });

  it("appears and disappears as its owner changes the visibility", async () => {
    const { hub } = openTestHub();
    await hub.publish({ name: "a", version: "1.0.0" }, ada);
    await hub.setVisibility("a", "1.0.0", { sharedWith: ["bob", "bob"] }, ada);
    expect(await hub.get("a", "1.0.0", bob)).toMatchObject({ visibility: "shared", sharedWith: ["bob"] });
    await expect(hub.get("a", "1.0.0", tim)).rejects.toMatchObject({ code: "environment.not_found" });
    await hub.setVisibility("a", "1.0.0", { visibility: "public" }, ada);
    expect((await hub.get("a", "1.0.0", tim)).visibility).toBe("public");
    await hub.setVisibility("a", "1.0.0", { visibility: "private" }, root);
    await expect(hub.get("a", "1.0.0", bob)).rejects.toMatchObject({ code: "environment.not_found" });
    await hub.publish({ name: "a", version: "1.0.0", visibility: "public" }, ada);
    expect((await hub.get("a", "1.0.0", tim)).history.filter(({ what }) => what === "visibility")).toHaveLength(4);
  });

  it("may be visible and still not writable", async () => {
    const { hub } = openTestHub();
    await hub.publish({ name: "a", version: "1.0.0", visibility: "public" }, ada);
    for (const caller of [bob, tim]) {
      await expect(hub.update("a", "1.0.0", { status: "Failed" }, caller)).rejects.toMatchObject({ code: "access.denied" });
      await expect(hub.release("a", "1.0.0", caller)).rejects.toMatchObject({ code: "access.denied" });
      await expect(hub.setVisibility("a", "1.0.0", {}, caller)).rejects.toMatchObject({ code: "access.denied" });
      await expect(hub.remove("a", "1.0.0", caller)).rejects.toMatchObject({ code: "access.denied" });
      await expect(hub.remove("a", null, caller)).rejects.toMatchObject({ code: "access.denied" });
    }
  });
});
