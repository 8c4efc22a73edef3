import { describe, expect, it } from "vitest";
import { MemoryRows, MemoryStore } from "../../stores/memory/store.ts";
import type { ListOptions } from "../../stores/store.ts";
import { ada, bob, openTestHub } from "../fixtures/hub.ts";
import { VersionRows } from "./version-index.ts";

/** Counts the rows of versions that are read one by one and by lists. */
class CountingStore extends MemoryStore {
  listed = 0;
  got = 0;

  override async list<T>(kind: string, options: ListOptions) {
    const rows = await super.list<T>(kind, options);
    if (kind === "environment") this.listed += rows.length;
    return rows;
  }

  override async get<T>(kind: string, key: string) {
    if (kind === "environment") this.got += 1;
    return super.get<T>(kind, key);
  }
}

describe("a search", () => {
  it("reads only the rows of its page, for any number of versions", async () => {
    const store = new CountingStore();
    const { hub, push } = openTestHub("memory", { store });
    for (let at = 0; at < 40; at += 1) await push(ada, `env-${at % 8}`, `1.0.${at}`);
    await hub.list({}, ada);
    store.listed = 0;
    store.got = 0;
    const { items, total } = await hub.list({ query: "env", limit: 3 }, ada);
    expect({ items: items.length, total, listed: store.listed, got: store.got }).toEqual({ items: 3, total: 40, listed: 0, got: 3 });
  });

  it("does not read the index again after a change of this server, and finds the change", async () => {
    const store = new CountingStore();
    const { hub, push } = openTestHub("memory", { store });
    await push(ada, "shop", "1.0.0");
    await hub.list({}, ada);
    await push(ada, "shop", "1.1.0", { tags: ["new"] });
    await hub.remove("shop", "1.0.0", ada);
    store.listed = 0;
    const { items } = await hub.list({}, ada);
    expect(items.map(({ version }) => version)).toEqual(["1.1.0"]);
    expect((await hub.list({ tag: "new" }, ada)).total).toBe(1);
    expect(store.listed).toBe(0);
  });

  it("finds changes of another server at once", async () => {
    const shared = new MemoryRows();
    const one = openTestHub("memory", { store: new MemoryStore(shared) });
    const two = openTestHub("memory", { store: new MemoryStore(shared) });
    await one.push(ada, "shop", "1.0.0");
    expect((await two.hub.list({}, ada)).total).toBe(1);
    await one.push(ada, "shop", "1.1.0");
    await two.push(bob, "till", "1.0.0", { visibility: "public" });
    for (const { hub } of [one, two]) {
      expect((await hub.list({}, ada)).items.map(({ name, version }) => `${name}@${version}`)).toEqual([
        "shop@1.1.0",
        "shop@1.0.0",
        "till@1.0.0",
      ]);
    }
  });
});

describe("VersionRows", () => {
  it("reads an uncounted change once the index has expired", async () => {
    const shared = new MemoryRows();
    const { push } = openTestHub("memory", { store: new MemoryStore(shared) });
    await push(ada, "shop", "1.0.0");
    const store = new MemoryStore(shared);
    let now = 0;
    const rows = new VersionRows(store, () => now);
    expect(await rows.index.sorted()).toHaveLength(1);
    const row = await rows.find("shop@1.0.0");
    if (row === null) throw new Error("the version is not there");
    await store.insert("environment", "shop@2.0.0", { ...row.value, version: "2.0.0" }, { all: "yes", name: "shop", owner: "ada" });
    expect(await rows.index.sorted()).toHaveLength(1);
    now = 60_000;
    expect(await rows.index.sorted()).toHaveLength(2);
  });
});
