import { describe, expect, it } from "vitest";
import { MemoryStore } from "../../stores/memory/store.ts";
import { PortLinks } from "./links.ts";

const instance = { id: "shop-1", createdAt: "2026-01-01T00:00:00.000Z" };

function open() {
  let now = Date.parse("2026-01-01T12:00:00.000Z");
  const store = new MemoryStore();
  const clock = () => new Date(now);
  const pass = (ms: number) => {
    now += ms;
  };
  return { store, links: new PortLinks(store, clock), other: new PortLinks(store, clock), pass };
}

describe("a link to a port", () => {
  it("works on every server of the store until it expires, and is then deleted", async () => {
    const { store, links, other, pass } = open();
    const { token, expiresAt } = await links.issue(instance, { port: 3000 }, 60_000);
    expect(expiresAt).toBe("2026-01-01T12:01:00.000Z");
    const row = { instanceId: "shop-1", instanceCreatedAt: instance.createdAt, port: 3000, expiresAt };
    expect(await other.find(token)).toEqual({ ...row, leftMs: 60_000 });
    pass(59_999);
    expect(await links.find(token)).toEqual({ ...row, leftMs: 1 });
    pass(1);
    expect(await links.find(token)).toBeNull();
    await other.collect();
    expect(await store.list("port-link", { limit: 10 })).toEqual([]);
  });

  it("cannot be read from the store, and no other text is accepted", async () => {
    const { store, links } = open();
    const [one, two] = [await links.issue(instance, { port: 3000 }, 60_000), await links.issue(instance, { port: 3000 }, 60_000)];
    expect(one.token).toMatch(/^[0-9a-f]{32}$/);
    expect(one.token).not.toBe(two.token);
    expect(JSON.stringify(await store.list("port-link", { limit: 10 }))).not.toContain(one.token);
    for (const guess of ["", "x", `${one.token}x`, one.token.toUpperCase().replace(/^\d+$/, "")]) {
      expect(await links.find(guess)).toBeNull();
    }
  });

  it("is refused if an instance has a thousand valid ones; expired ones do not count", async () => {
    const { links, pass } = open();
    for (let n = 0; n < 1_000; n++) await links.issue(instance, { port: 3000 }, 60_000);
    await expect(links.issue(instance, { port: 3000 }, 60_000)).rejects.toMatchObject({ code: "quota.exceeded" });
    await links.issue({ ...instance, id: "shop-2" }, { port: 3000 }, 60_000);
    pass(60_000);
    await links.issue(instance, { port: 3000 }, 60_000);
  });
});
