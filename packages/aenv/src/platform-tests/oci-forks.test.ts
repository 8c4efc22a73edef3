import { readdirSync } from "node:fs";
import { join } from "node:path";
import { describeNeeding } from "@aenv/testing";
import { afterAll, beforeAll, expect, it } from "vitest";
import { Environment } from "../index.ts";
import { callTool, urlOf } from "./calls.ts";
import { type Platform, projects, publish, startPlatform } from "./platform.ts";

const snapshotsOf = ({ home }: Platform) => readdirSync(join(home, "oci/snapshots")).length;

const node = async (platform: Platform, id: string, script: string) => {
  const body = { command: ["node", "-e", script], wait: true };
  return ((await platform.demand("POST", `/env-instance/${id}/exec`, body)) as { stdout: string }).stdout;
};

describeNeeding("runsc", "a platform whose sandboxes can be copied", () => {
  let platform: Platform;
  beforeAll(async () => {
    platform = await startPlatform({ flags: { engine: "oci", runtime: "runsc" } });
  });
  afterAll(() => platform?.close());

  it("forks an instance with its memory and files, also one whose state cannot be a value, and forks can be forked", async () => {
    const ref = await publish(platform, projects.tally);
    await using parent = new Environment(ref, { systemUrl: platform.controlUrl });
    const add = async (env: Environment, n: number) => (await env.callTool("add", { n })).content;
    const text = (value: number) => [{ type: "text", text: String(value) }];
    expect(await add(parent, 1)).toEqual(text(1));
    const { instanceId } = await parent.getEnvInfo();
    await node(platform, instanceId, "fs.writeFileSync('/kept', 'before')");

    const [left, right] = (await parent.fork(2, { fidelity: "memory" })) as [Environment, Environment];
    expect([left.forkFidelity, parent.forkFidelity]).toEqual(["memory", null]);
    expect([await add(left, 10), await add(right, 20), await add(parent, 1)]).toEqual([text(11), text(21), text(2)]);
    const [again] = (await left.fork(1, { fidelity: "memory" })) as [Environment];
    expect(await add(again, 100)).toEqual(text(111));
    expect(await node(platform, (await again.getEnvInfo()).instanceId, "console.log(fs.readFileSync('/kept', 'utf8'))")).toBe("before\n");
    for (const one of [left, right, again]) await one.release();
    expect(snapshotsOf(platform)).toBe(0);
  }, 120_000);

  it("forks the state together with the files of the sandbox", async () => {
    const parent = await platform.create(await publish(platform, projects.probe));
    await callTool(urlOf(platform, parent.id), "count");
    await node(platform, parent.id, "fs.writeFileSync('/kept', 'before')");
    const [fork] = (await platform.demand("POST", `/env-instance/${parent.id}/fork`, { count: 1, fidelity: "files" })) as [{ id: string }];
    expect(fork).toMatchObject({ fork_fidelity: "files" });
    expect(await callTool(urlOf(platform, fork.id), "count")).toMatchObject({ text: "2" });
    expect(await node(platform, fork.id, "console.log(fs.readFileSync('/kept', 'utf8'))")).toBe("before\n");
  }, 120_000);

  it("starts instances as copies of a stored process, if the environment asks for it", async () => {
    const ref = await publish(platform, projects.probe, { version: "1.0.1", deployConfig: { warmStart: true } });
    const first = await platform.create(ref);
    expect(snapshotsOf(platform)).toBe(1);
    const second = await platform.create(ref);
    for (const { id } of [first, second]) expect(await callTool(urlOf(platform, id), "count")).toMatchObject({ text: "1" });
    expect(snapshotsOf(platform)).toBe(1);
  }, 120_000);
});
