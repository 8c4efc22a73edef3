import { defineEnvironment, type EnvironmentDefinition } from "@aenv/kit";
import { temporaryTree } from "@aenv/testing";
import { describe, expect, it } from "vitest";
import { ada, bob, openTestServer, openWorld } from "./fixtures/test-server.ts";
import { Secrets } from "./secrets.ts";

describe("secrets", () => {
  const environment = (secrets: object, owner = "ada") => ({
    name: "shop",
    version: "1.0.0",
    owner,
    config: { name: "shop", version: "1.0.0", deployConfig: { secrets } as { secrets: Record<string, string> } },
  });
  const open = () => {
    const tree = temporaryTree({ "ada/api-key": "hidden-value\n", "bob/own": "value-of-bob", outside: "not a secret", "ada/nul": "a\0b" });
    return { tree, secrets: new Secrets(tree.path) };
  };

  it("are read from the folder of the instance's owner", async () => {
    const { tree, secrets } = open();
    using _ = tree;
    expect(await secrets.resolve(environment({ API_KEY: "api-key" }), {}, "ada")).toEqual({ API_KEY: "hidden-value" });
    expect(await secrets.resolve(environment({}), { secrets: { KEY: "own" } }, "bob")).toEqual({ KEY: "value-of-bob" });
    expect(await secrets.resolve(environment({}), {}, "bob")).toEqual({});
  });

  it("are given to the environment of another publisher only if the request names them", async () => {
    const { tree, secrets } = open();
    using _ = tree;
    const needed = "shop@1.0.0 of another publisher needs secrets as API_KEY; name yours in 'secrets' of the request";
    await expect(secrets.resolve(environment({ API_KEY: "api-key" }), {}, "bob")).rejects.toThrow(needed);
    expect(await secrets.resolve(environment({ API_KEY: "api-key" }), { secrets: { API_KEY: "own" } }, "bob")).toEqual({
      API_KEY: "value-of-bob",
    });
  });

  it("that cannot be used give an error with the next step, and no path of the server", async () => {
    const { tree, secrets } = open();
    using _ = tree;
    const problem = (names: Record<string, string>, owner = "ada", from = secrets) =>
      from.resolve(environment({}), { secrets: names }, owner).then(
        () => "none",
        (error: Error) => error.message,
      );
    expect(await problem({ A: "missing" })).toBe(
      "the secret 'missing' of ada does not exist; its operator adds it as the file ada/missing in secretsDir",
    );
    expect(await problem({ A: "outside" }, "..")).toContain("is no name of a folder");
    expect(await problem({ A: "nul" })).toContain("contains a NUL byte");
    expect(await problem({ LD_PRELOAD: "api-key" })).toContain("a caller may not set it");
    expect(await problem({ A: "x" }, "ada", new Secrets(null))).toContain("its operator can set secretsDir");
    for (const text of [await problem({ A: "missing" }), await problem({ A: "nul" })]) expect(text).not.toContain(tree.path);
  });

  it("reach the sandbox and its forks, and neither the row nor its events", async () => {
    const { tree } = open();
    using _ = tree;
    const world = openWorld();
    const server = openTestServer(world, { secretsDir: tree.path });
    const ref = await world.publish(ada, "shop", { isolation: "instance", secrets: { FAIL: "api-key" } });
    // The environment of the tests fails with the value of this variable.
    await expect(server.create(ref)).rejects.toThrow(/failed.*\*\*\*/);
    expect(JSON.stringify(server.changes)).not.toContain("hidden-value");
    const other = await world.publish(ada, "quiet", { isolation: "instance", secrets: { TOKEN: "api-key" } });
    const row = await server.create(other);
    expect(JSON.stringify(row)).not.toContain("hidden-value");
    const [fork] = await server.instances.fork(row.id, 1, { caller: ada, signal: server.signal });
    expect(JSON.stringify([fork, server.changes.filter(({ id }) => id === fork?.id)])).not.toContain("hidden-value");
    await expect(server.create(other, {}, bob)).rejects.toThrow("needs secrets as TOKEN");
  });

  it("are not in the reason why a fork failed", async () => {
    const { tree } = open();
    using _ = tree;
    const environment = defineEnvironment({
      setup: () => ({}),
      snapshot: () => ({}),
      restore: (_, { variables }) => {
        throw new Error(`the token ${variables.TOKEN} is not accepted`);
      },
    }) as EnvironmentDefinition;
    const world = openWorld({}, environment);
    const server = openTestServer(world, { secretsDir: tree.path });
    const row = await server.create(await world.publish(ada, "shop", { isolation: "instance", secrets: { TOKEN: "api-key" } }));
    const forking = server.instances.fork(row.id, 1, { caller: ada, signal: server.signal });
    await expect(forking).rejects.toThrow(/the token \*\*\* is not accepted/);
    expect(JSON.stringify(server.changes)).not.toContain("hidden-value");
  });

  it("are not stored with files or memory unless the request says so, also not of forks and of instances from such a snapshot", async () => {
    const { tree } = open();
    using _ = tree;
    const world = openWorld({ snapshots: ["files", "memory"] });
    const server = openTestServer(world, { secretsDir: tree.path });
    const context = { caller: ada, signal: server.signal };
    const row = await server.create(await world.publish(ada, "quiet", { isolation: "instance", secrets: { TOKEN: "api-key" } }));
    const [fork] = await server.instances.fork(row.id, 1, context);
    const refused = { code: "request.invalid", message: expect.stringMatching(/got secrets as TOKEN.*--include-secrets/) };
    for (const id of [row.id, fork?.id ?? ""])
      for (const fidelity of ["files", "memory"] as const)
        await expect(server.instances.store(id, { fidelity }, context)).rejects.toMatchObject(refused);
    await server.instances.store(row.id, { name: "state" }, context);
    await server.instances.store(row.id, { name: "files", fidelity: "files", include_secrets: true }, context);
    const plain = await world.publish(ada, "plain", { isolation: "instance" });
    await server.instances.store((await server.create(plain)).id, { fidelity: "files" }, context);
    await server.instances.store((await server.create(plain, { secrets: { KEY: "api-key" } })).id, {}, context);
    const started = await server.create("quiet", { snapshot: "files" });
    await expect(server.instances.store(started.id, { fidelity: "files" }, context)).rejects.toMatchObject(refused);
  });
});
