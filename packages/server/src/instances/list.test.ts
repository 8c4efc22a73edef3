import { describe, expect, it } from "vitest";
import type { Caller } from "../access/access.ts";
import { MemoryStore } from "../stores/memory/store.ts";
import { InstanceList } from "./list.ts";
import { type InstanceRow, instanceRows } from "./row.ts";

const ada: Caller = { owner: "ada", roles: new Set(["trainer"]), tokenId: "t", maxInstances: null };
const root: Caller = { owner: "root", roles: new Set(["admin"]), tokenId: "t", maxInstances: null };

async function listOf(...rows: Partial<InstanceRow>[]) {
  const collection = instanceRows(new MemoryStore());
  for (const [at, change] of rows.entries()) {
    const id = `i-${String(at).padStart(4, "0")}`;
    const row = {
      id,
      agentKey: id,
      owner: "ada",
      environment: { name: "shop", version: "1.0.0" },
      status: "Running",
      labels: {},
      ...change,
    };
    await collection.insert(id, { slot: null, group: null, server: "r-1", ...row } as InstanceRow);
  }
  const list = new InstanceList(collection);
  return async (filter: object, caller = ada) => (await list.page({ limit: 100, ...filter }, caller)).rows.map(({ id }) => id);
}

describe("a list of instances", () => {
  it("shows an owner its own instances, and an admin all of them or those of one owner", async () => {
    const list = await listOf({}, { owner: "bob" }, {});
    expect(await list({})).toEqual(["i-0000", "i-0002"]);
    expect(await list({ owner: "bob" })).toEqual(["i-0000", "i-0002"]);
    expect(await list({}, root)).toEqual(["i-0000", "i-0001", "i-0002"]);
    expect(await list({ owner: "bob" }, root)).toEqual(["i-0001"]);
  });

  it("filters by environment, version and status, and omits ended instances by default", async () => {
    const bank = { environment: { name: "bank", version: "1.0.0" } };
    const list = await listOf(
      {},
      bank,
      { environment: { name: "shop", version: "1.1.0" } },
      { status: "Terminated" },
      { status: "Failed" },
    );
    expect(await list({})).toEqual(["i-0000", "i-0001", "i-0002", "i-0004"]);
    expect(await list({ envName: "shop" })).toEqual(["i-0000", "i-0002", "i-0004"]);
    expect(await list({ envName: "shop@1.1.0" })).toEqual(["i-0002"]);
    expect(await list({ envName: "bank" }, root)).toEqual(["i-0001"]);
    expect(await list({ envName: "" })).toHaveLength(4);
    expect(await list({ status: "Terminated" })).toEqual(["i-0003"]);
    expect(await list({ status: "Failed", envName: "shop" })).toEqual(["i-0004"]);
  });

  it("filters by labels, all of which must match", async () => {
    const list = await listOf({ labels: { run: "7", split: "train" } }, { labels: { run: "7" } }, { labels: { run: "8=7" } });
    expect(await list({ label: "run=7" })).toEqual(["i-0000", "i-0001"]);
    expect(await list({ label: ["run=7", "split=train"] })).toEqual(["i-0000"]);
    expect(await list({ label: "run=8=7" })).toEqual(["i-0002"]);
    await expect(list({ label: "run" })).rejects.toThrow("label is 'run'; write key=value");
  });

  it("returns each instance on exactly one page, however few match", async () => {
    const collection = instanceRows(new MemoryStore());
    for (let at = 0; at < 1_200; at++) {
      const id = `i-${String(at).padStart(4, "0")}`;
      const row = { id, agentKey: id, owner: "ada", environment: { name: "shop", version: "1.0.0" }, status: "Running", slot: null };
      await collection.insert(id, {
        ...row,
        group: null,
        server: "r-1",
        labels: at % 7 === 0 ? { seventh: "yes" } : {},
      } as unknown as InstanceRow);
    }
    const list = new InstanceList(collection);
    const found: string[] = [];
    let after: string | undefined;
    do {
      const page = await list.page({ limit: 50, label: "seventh=yes", ...(after !== undefined && { after }) }, ada);
      expect(page.rows.length).toBeLessThanOrEqual(50);
      found.push(...page.rows.map(({ id }) => id));
      after = page.next ?? undefined;
    } while (after !== undefined);
    expect(found).toHaveLength(172);
    expect(new Set(found).size).toBe(172);
  });
});
