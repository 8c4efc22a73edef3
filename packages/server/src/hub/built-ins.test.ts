import { describe, expect, it } from "vitest";
import { type BuiltIns, PLATFORM } from "./built-ins.ts";
import { bundleOf } from "./fixtures/archives.ts";
import { ada, bob, callerOf, openTestHub, tim } from "./fixtures/hub.ts";

function withTerminal() {
  const bundled: string[] = [];
  const builtIns: BuiltIns = {
    versionOf: (name) => (name === "terminal" ? "1.2.0" : null),
    bundle: async (name) => {
      bundled.push(name);
      const config = { name, version: "1.2.0" };
      const { digest, bytes } = bundleOf({ "main.js": "run()" }, config);
      return { config, digest, bytes };
    },
  };
  return { bundled, ...openTestHub("memory", { builtIns }) };
}

describe("a built-in environment", () => {
  it.each(["terminal", "terminal@1.2.0", "terminal@^1", "terminal@latest"])("is published at its first use as %s", async (ref) => {
    const { hub, bundled, world } = withTerminal();
    expect(await hub.resolve(ref, ada)).toMatchObject({ name: "terminal", version: "1.2.0", owner: PLATFORM.owner });
    await hub.resolve(ref, ada);
    expect(bundled).toEqual(["terminal"]);
    expect(world.inspected).toHaveLength(1);
    expect(await hub.get("terminal", "1.2.0", ada)).toMatchObject({ version: "1.2.0" });
  });

  it("is there for everybody after its first use, whoever that was", async () => {
    const { hub, bundled } = withTerminal();
    await hub.get("terminal", "1.2.0", ada);
    for (const caller of [bob, tim]) expect(await hub.resolve("terminal@1.2.0", caller)).toMatchObject({ visibility: "public" });
    expect(bundled).toEqual(["terminal"]);
  });

  it("keeps its name, under which no publisher can offer other code to everybody", async () => {
    const { hub, push } = withTerminal();
    await hub.resolve("terminal", ada);
    for (const caller of [ada, bob])
      await expect(push(caller, "terminal", "9.0.0", { visibility: "public" })).rejects.toThrow(/built-in environment.*aenv push --name/);
    expect(await hub.resolve("terminal", bob)).toMatchObject({ version: "1.2.0" });
  });

  it("gets its newer version after an upgrade of the server", async () => {
    const { hub, push, bundled } = withTerminal();
    await push(PLATFORM, "terminal", "1.1.0", { visibility: "public" });
    expect(await hub.resolve("terminal@1.2.0", ada)).toMatchObject({ version: "1.2.0", owner: PLATFORM.owner });
    expect(bundled).toEqual(["terminal"]);
  });

  it("stays deleted", async () => {
    const { hub, bundled } = withTerminal();
    await hub.resolve("terminal", ada);
    await hub.remove("terminal", "1.2.0", PLATFORM);
    await expect(hub.resolve("terminal", ada)).rejects.toThrow("Environment not found");
    expect(bundled).toEqual(["terminal"]);
  });

  it("is bundled once for a batch that asks for it at once", async () => {
    const { hub, bundled } = withTerminal();
    await Promise.all(Array.from({ length: 20 }, () => hub.resolve("terminal", ada)));
    expect(bundled).toEqual(["terminal"]);
  });

  it("is not brought to the server by a caller who may not publish; the error names the way", async () => {
    const { hub, bundled } = withTerminal();
    await expect(hub.resolve("terminal", tim)).rejects.toMatchObject({
      code: "environment.not_found",
      message: expect.stringContaining("aenv get terminal@1.2.0"),
    });
    await expect(hub.get("terminal", "1.2.0", tim)).rejects.toThrow("aenv get terminal@1.2.0");
    expect(bundled).toEqual([]);
  });

  it("is published by hand where an older version of it is, and the error says so to those who see that version", async () => {
    const { hub, push, bundled } = withTerminal();
    await push(bob, "terminal", "1.1.0", { visibility: "public" });
    for (const find of [() => hub.resolve("terminal@1.2.0", tim), () => hub.get("terminal", "1.2.0", bob)])
      await expect(find()).rejects.toThrow("'terminal@1.2.0'; it comes with this AEnv");
    expect(await hub.resolve("terminal@^1", tim)).toMatchObject({ version: "1.1.0" });
    await expect(hub.resolve("terminal@3.0.0", tim)).rejects.toThrow("available: 1.1.0");
    expect(bundled).toEqual([]);
  });

  it("never takes a name that somebody has, shows it to others, or serves another version", async () => {
    const { hub, push, bundled } = withTerminal();
    await push(bob, "terminal", "0.1.0");
    await expect(hub.resolve("terminal", ada)).rejects.toThrow("Environment not found: 'terminal'");
    expect((await hub.resolve("terminal", bob)).version).toBe("0.1.0");
    const fresh = withTerminal();
    await expect(fresh.hub.resolve("terminal@2.0.0", ada)).rejects.toThrow("'terminal@2.0.0'; this AEnv comes with terminal@1.2.0");
    await expect(fresh.hub.resolve("other", ada)).rejects.toThrow("Environment not found: 'other'");
    const narrow = { ...callerOf("ada", "publisher"), scopes: ["shop-*"] };
    await expect(fresh.hub.resolve("terminal", narrow)).rejects.toMatchObject({ code: "environment.not_found" });
    expect([...bundled, ...fresh.bundled]).toEqual([]);
  });
});
