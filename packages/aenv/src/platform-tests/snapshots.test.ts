import { randomBytes } from "node:crypto";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import type { SnapshotRecord } from "@aenv/contract";
import { temporaryTree } from "@aenv/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Environment, SnapshotClient } from "../index.ts";
import { type Platform, projects, publish, startPlatform } from "./platform.ts";

/** The files of stored content. */
const contentOf = ({ home }: Platform) =>
  readdirSync(join(home, "blobs/snapshots"), { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());

async function allOf(snapshots: SnapshotClient): Promise<SnapshotRecord[]> {
  const all: SnapshotRecord[] = [];
  for await (const one of snapshots.each()) all.push(one);
  return all;
}

describe("stored snapshots of a platform with tokens", { timeout: 120_000 }, () => {
  const secrets = temporaryTree({ "ada/api-key": "hidden-value" });
  let platform: Platform;
  let tokens: Record<"ada" | "bob", { readonly authorization: string }>;
  beforeAll(async () => {
    platform = await startPlatform({ flags: { access: "on", maxSnapshots: 3, snapshotBytes: "600 B", secretsDir: secrets.path } });
    tokens = { ada: await platform.token("ada", "publisher", "trainer"), bob: await platform.token("bob", "publisher", "trainer") };
    await publish(platform, projects.echo, { headers: tokens.ada, deployConfig: { isolation: "shared", secrets: { KEY: "api-key" } } });
    await platform.demand("POST", "/env/echo/1.0.0/visibility", { visibility: "public" }, tokens.ada);
  });
  afterAll(async () => {
    await platform?.close();
    secrets[Symbol.dispose]();
  });
  const optionsOf = (owner: "ada" | "bob") => ({
    systemUrl: platform.controlUrl,
    apiKey: tokens[owner].authorization.slice("Bearer ".length),
  });
  const clientOf = (owner: "ada" | "bob") => new SnapshotClient(platform.controlUrl, optionsOf(owner));

  it("are used with the SDK: stored by name, listed, started from, and deleted while they are used", async () => {
    await using env = await Environment.create("echo", optionsOf("ada"));
    await env.callTool("remember", { name: "color", text: "blue" });
    const stored = await env.snapshot({ name: "blue" });
    expect(stored).toMatchObject({ name: "blue", owner: "ada", fidelity: "state", status: "Ready", environment: "echo@1.0.0" });
    expect(await env.snapshot()).toMatchObject({ environment: "echo@1.0.0" });
    await env.callTool("remember", { name: "color", text: "red" });
    for (const snapshot of ["blue", { name: "blue" }, { id: stored.id }, stored]) {
      await using copy = await Environment.create("echo", { ...optionsOf("ada"), snapshot });
      expect(copy.startedFrom).toEqual({ id: stored.id, name: "blue", fidelity: "state" });
      expect((await copy.callTool("remember", { name: "color" })).content).toMatchObject([{ text: expect.stringContaining("blue") }]);
    }
    expect(env.startedFrom).toBeNull();
    await using copy = await Environment.create("echo", { ...optionsOf("ada"), snapshot: "blue" });
    const snapshots = clientOf("ada");
    expect(await snapshots.get("blue")).toEqual(stored);
    expect(await allOf(snapshots)).toEqual([stored]);
    expect([await snapshots.delete("blue"), await snapshots.delete("blue")]).toEqual([true, false]);
    expect((await copy.callTool("remember", { name: "color" })).content).toMatchObject([{ text: expect.stringContaining("blue") }]);
    expect(contentOf(platform)).toEqual([]);
  });

  it("are 404 for other owners", async () => {
    await using env = await Environment.create("echo", optionsOf("ada"));
    const { id, name } = await env.snapshot({ fidelity: "state" });
    expect(name).toBe(id);
    const bob = clientOf("bob");
    await expect(bob.get(id)).rejects.toMatchObject({ code: "snapshot.not_found" });
    expect([await bob.delete(id), await allOf(bob)]).toEqual([false, []]);
    for (const [method, path, body] of [
      ["GET", `/snapshots/${id}`, undefined],
      ["DELETE", `/snapshots/${id}`, undefined],
      ["POST", "/env-instance", { envName: "echo", snapshot: id }],
    ] as const)
      expect(await platform.ask(method, path, body, tokens.bob)).toMatchObject({ status: 404, error: { code: "snapshot.not_found" } });
    expect(await clientOf("ada").delete(id)).toBe(true);
  });

  it("have the files of an instance with secrets only if the request says so", async () => {
    await using env = await Environment.create("echo", optionsOf("ada"));
    await expect(env.snapshot({ fidelity: "files" })).rejects.toThrow("got secrets as KEY");
    await expect(env.snapshot({ fidelity: "files", includeSecrets: true })).rejects.toThrow("copies its state only");
  });

  it("are limited in number and size, and the error says what is used and what to do", async () => {
    await using env = await Environment.create("echo", optionsOf("ada"));
    const store = (name: string) => platform.ask("POST", `/env-instance/${instanceId}/snapshot`, { name }, tokens.ada);
    const { instanceId } = await env.getEnvInfo();
    // The same content counts once.
    for (const name of ["a", "b", "c"]) expect((await store(name)).status).toBe(200);
    expect(await store("a")).toMatchObject({ status: 409, error: { code: "snapshot.exists" } });
    expect(await store("d")).toMatchObject({
      status: 429,
      error: { code: "quota.exceeded", retryable: false },
      message: expect.stringContaining("'ada' has stored 3 snapshots and may store 3; delete snapshots"),
    });
    await clientOf("ada").delete("c");
    // What does not compress.
    const text = randomBytes(1_000).toString("base64");
    await env.callTool("echo", { text });
    expect(await store("large")).toMatchObject({
      status: 429,
      message: expect.stringMatching(
        /'ada' has stored \d+ B in 2 snapshots and may store 600 B, so this one does not fit; .*raise snapshotBytes/,
      ),
    });
    const left = (await platform.demand("GET", "/snapshots?limit=1", undefined, tokens.ada)) as { items: SnapshotRecord[]; next: string };
    expect(left.items.map(({ name }) => name)).toEqual(["a"]);
    expect(await platform.demand("GET", `/snapshots?after=${encodeURIComponent(left.next)}`, undefined, tokens.ada)).toMatchObject({
      items: [{ name: "b" }],
      next: null,
    });
    expect(contentOf(platform)).toHaveLength(1);
  });
});
