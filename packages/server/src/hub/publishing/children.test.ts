import { describe, expect, it } from "vitest";
import { ada, bob, metadata, openTestHub, root } from "../fixtures/hub.ts";

const uses = (...list: object[]) => ({ deployConfig: { uses: list }, visibility: "public" });

describe("an environment that uses others", () => {
  it("is published with the versions that its ranges mean now, and keeps them when newer ones are published", async () => {
    const { hub, push } = openTestHub();
    await push(ada, "judge", "1.0.0", { visibility: "public" });
    const { environment } = await push(ada, "shop", "1.0.0", uses({ name: "judge", env: "judge@^1", task: "same" }));
    await push(ada, "judge", "1.1.0", { visibility: "public" }, "run(2)");
    const judge = await hub.get("judge", "1.0.0", ada);
    const pin = { name: "judge", task: "same", environment: { name: "judge", version: "1.0.0" }, contentDigest: judge.contentDigest };
    expect(environment.children).toEqual([pin]);
    expect((await hub.get("shop", "1.0.0", bob)).children).toEqual([pin]);
  });

  it("may use what its publisher sees, for everybody who may use it, and nothing else", async () => {
    const { hub, push } = openTestHub();
    await push(ada, "secret", "1.0.0", { visibility: "private" });
    await expect(push(bob, "mine", "1.0.0", uses({ name: "one", env: "secret@1.0.0" }))).rejects.toMatchObject({
      code: "environment.invalid",
      message: expect.stringContaining("'one' is 'secret@1.0.0', which cannot be resolved"),
    });
    const { environment } = await push(ada, "open", "1.0.0", uses({ name: "one", env: "secret" }));
    const [pin] = environment.children;
    expect(pin === undefined ? null : await hub.pinned(pin)).toMatchObject({ name: "secret", version: "1.0.0" });
  });

  it("cannot contain itself, not at any depth", async () => {
    const { push } = openTestHub();
    await push(ada, "a", "1.0.0");
    await push(ada, "b", "1.0.0", uses({ name: "below", env: "a@1.0.0" }));
    await push(ada, "c", "1.0.0", uses({ name: "below", env: "b" }));
    await expect(push(ada, "a", "1.1.0", uses({ name: "below", env: "c" }))).rejects.toMatchObject({
      code: "environment.invalid",
      message: expect.stringContaining("a@1.1.0 -> c@1.0.0 -> b@1.0.0 -> a@1.0.0"),
    });
  });

  it("has at most 8 levels and 64 instances", async () => {
    const { push } = openTestHub();
    await push(ada, "l1", "1.0.0");
    for (let level = 2; level <= 8; level++) await push(ada, `l${level}`, "1.0.0", uses({ name: "below", env: `l${level - 1}` }));
    await expect(push(ada, "l9", "1.0.0", uses({ name: "below", env: "l8" }))).rejects.toMatchObject({
      message: expect.stringContaining("more than 8 levels"),
    });
    const eight = Array.from({ length: 8 }, (_, at) => ({ name: `n${at}`, env: "l1" }));
    await push(ada, "wide", "1.0.0", uses(...eight));
    const wide = (count: number) => Array.from({ length: count }, (_, at) => ({ name: `n${at}`, env: "wide" }));
    await push(ada, "wider", "1.0.0", uses(...wide(7)));
    await expect(push(ada, "widest", "1.0.0", uses(...wide(8)))).rejects.toMatchObject({
      message: expect.stringContaining("more than 64 instances"),
    });
  });

  it("re-exports tools of its children with their names before them", async () => {
    const { hub, push } = openTestHub();
    await push(ada, "shop", "1.0.0");
    await push(ada, "desk", "1.0.0", uses({ name: "shop", env: "shop", reexport: ["*"] }));
    const { metadata: offered } = await hub.get("desk", "1.0.0", ada);
    expect(offered?.tools.map(({ name }) => name)).toEqual(["add", "shop__add"]);
    await expect(push(ada, "other", "1.0.0", uses({ name: "shop", env: "shop", reexport: ["buy"] }))).rejects.toMatchObject({
      message: expect.stringContaining("shop@1.0.0 has no tool 'buy' to re-export; it has add"),
    });
    await expect(
      push(ada, "long", "1.0.0", uses({ name: "desk-of-the-shop-of-the-city", env: "desk", reexport: ["*"] })),
    ).resolves.toBeDefined();
  });

  it("cannot have a re-exported tool with a name that is taken or too long for models", async () => {
    const long = { name: "a".repeat(50), inputSchema: { type: "object" } };
    const tools = [...metadata.tools, long, { name: "shop__add", inputSchema: { type: "object" } }];
    const { push } = openTestHub("memory", { inspect: async () => ({ ...metadata, tools }) });
    await push(ada, "shop", "1.0.0");
    const refused = (message: string) => ({ code: "environment.invalid", message: expect.stringContaining(message) });
    await expect(push(ada, "a", "1.0.0", uses({ name: "shop", env: "shop", reexport: ["add"] }))).rejects.toMatchObject(
      refused("two tools would have the name 'shop__add'"),
    );
    await expect(push(ada, "b", "1.0.0", uses({ name: "the-shop-of-ada", env: "shop", reexport: ["*"] }))).rejects.toMatchObject(
      refused("has 67 characters, and models take 64"),
    );
  });

  it("keeps the versions that it uses from being deleted", async () => {
    const { hub, push } = openTestHub();
    await push(ada, "judge", "1.0.0");
    await push(ada, "shop", "1.0.0", uses({ name: "judge", env: "judge" }));
    await expect(hub.remove("judge", "1.0.0", root)).rejects.toMatchObject({
      code: "environment.in_use",
      message: expect.stringContaining("shop@1.0.0 uses judge@1.0.0"),
    });
    await hub.remove("shop", "1.0.0", ada);
    expect(await hub.remove("judge", "1.0.0", ada)).toEqual(["1.0.0"]);
  });
});
