import { describe, expect, it } from "vitest";
import { describeStore } from "../conformance.ts";
import { MemoryRows, MemoryStore } from "./store.ts";

const rows = new MemoryRows();
describeStore("memory", { open: async () => new MemoryStore(rows) });

describe("the memory store", () => {
  it("is isolated from other stores by default", async () => {
    const store = new MemoryStore();
    await store.insert("thing", "a", 1, {});
    expect(await new MemoryStore().get("thing", "a")).toBeNull();
  });
});
