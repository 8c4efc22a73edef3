import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Platform, projects, publish, startPlatform } from "./platform.ts";

const MOUNTS = [{ id: "OSS_1", remote_dir: "/data", local_dir: "/workspace" }];
const WARNINGS = [
  "mount_points ignored, nothing is mounted: the engine 'process' cannot do it",
  "init_command ignored, it is not run: the engine 'process' cannot do it",
];

let platform: Platform;
let probe: string;
beforeAll(async () => {
  platform = await startPlatform();
  probe = await publish(platform, projects.probe);
});
afterAll(() => platform?.close());

describe("mounts and an init command in a create request", () => {
  it("are returned with a warning each, and as events", async () => {
    const made = await platform.create(probe, { mount_points: MOUNTS, init_command: "sleep 1" });
    expect(made).toMatchObject({
      status: "Running",
      warnings: WARNINGS,
      env: { deploy_config: { isolation: "instance", mountPoints: MOUNTS, initCommand: "sleep 1" } },
    });
    const events = (await platform.demand("GET", `/env-instance/${made.id}/events`)) as { what: string }[];
    for (const warning of WARNINGS) expect(events.map(({ what }) => what)).toContain(`warning: ${warning}`);
    const batch = { envName: probe, mount_points: MOUNTS, count: 2 };
    const { items } = (await platform.demand("POST", "/env-instance/batch", batch)) as { items: unknown[] };
    expect(items).toEqual(Array(2).fill({ success: true, data: expect.objectContaining({ warnings: [WARNINGS[0]] }) }));
  });

  it("are neither returned nor warned about if they are empty", async () => {
    const made = await platform.create(probe, { mount_points: [], init_command: "" });
    expect(made).not.toHaveProperty("warnings");
    expect(made.env?.deploy_config).toEqual({ isolation: "instance" });
  });

  it.each([{ mount_points: { id: "x" } }, { mount_points: ["x"] }, { init_command: ["sh"] }])("are refused as %j", async (wrong) => {
    const answer = await platform.ask("POST", "/env-instance", { envName: probe, ...wrong });
    expect(answer).toMatchObject({ status: 400, error: { code: "request.invalid" } });
    expect(answer.message).toContain(Object.keys(wrong)[0]);
  });

  it("may name a full image as datasource, for any prefix of the environment", async () => {
    const ref = await publish(platform, projects.probe, {
      version: "2.0.0",
      deployConfig: { imagePrefix: "registry.example.com/aenv/base" },
    });
    expect(await platform.create(ref, { datasource: "swebench/case:1" })).toMatchObject({ image: "swebench/case:1" });
    expect(await platform.create(ref, { datasource: "case-1" })).toMatchObject({ image: "registry.example.com/aenv/base:case-1" });
  });
});
