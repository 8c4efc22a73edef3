import { describe, expect, it } from "vitest";
import { ada, openTestServer, openWorld } from "./fixtures/test-server.ts";
import { sandboxOptionsOf } from "./sandbox-options.ts";

const MOUNTS = [{ id: "OSS_1", remote_dir: "/data", local_dir: "/workspace" }];
const NOT_MOUNTED = "mount_points ignored, nothing is mounted: the engine 'memory' cannot do it";
const NOT_RUN = "init_command ignored, it is not run: the engine 'memory' cannot do it";

async function open(deployConfig: object, can = {}) {
  const world = openWorld(can);
  const server = openTestServer(world);
  return { world, server, ref: await world.publish(ada, "shop", deployConfig) };
}

describe("sandbox options", () => {
  it("are those of the request, else of the environment's config; an empty value counts as missing", () => {
    const config = { name: "a", version: "1", deployConfig: { mountPoints: [{ id: "own" }], initCommand: "own" } };
    expect(sandboxOptionsOf(config, { mount_points: MOUNTS, init_command: "run" })).toEqual({ mountPoints: MOUNTS, initCommand: "run" });
    for (const empty of [{}, { mount_points: [], init_command: "" }, { mount_points: null, init_command: null }]) {
      expect(sandboxOptionsOf(config, empty)).toEqual({ mountPoints: [{ id: "own" }], initCommand: "own" });
      expect(sandboxOptionsOf({ name: "a", version: "1" }, empty)).toEqual({});
    }
  });

  it("give a warning and an event if the engine does not support them, on the instance and its forks", async () => {
    const { world, server, ref } = await open({ isolation: "instance" });
    const row = await server.create(ref, { mount_points: MOUNTS, init_command: "run" });
    expect(row).toMatchObject({ status: "Running", warnings: [NOT_MOUNTED, NOT_RUN] });
    const [fork] = await server.instances.fork(row.id, 1, { caller: ada, signal: server.signal });
    for (const one of [row, fork]) {
      const events = one?.events.map(({ what }) => what);
      expect(events).toEqual(expect.arrayContaining([`warning: ${NOT_MOUNTED}`, `warning: ${NOT_RUN}`]));
    }
    expect(world.started.every((spec) => spec.sandboxOptions === undefined)).toBe(true);
    expect(await server.create(ref)).not.toHaveProperty("warnings");
  });

  it("give a warning also if they are in the environment's config", async () => {
    const { server, ref } = await open({ mountPoints: MOUNTS });
    expect(await server.create(ref)).toMatchObject({ warnings: [NOT_MOUNTED] });
  });

  it("are passed to an engine that supports them, for the instance and its forks, and no warm process is used", async () => {
    const { world, server, ref } = await open({ isolation: "instance", initCommand: "serve" }, { mounts: true, initCommand: true });
    const row = await server.create(ref, { mount_points: MOUNTS });
    await server.instances.fork(row.id, 1, { caller: ada, signal: server.signal });
    expect(row.warnings).toBeUndefined();
    expect(world.started.map((spec) => spec.sandboxOptions)).toEqual(Array(2).fill({ mountPoints: MOUNTS, initCommand: "serve" }));
  });

  it("are ignored with a warning for instances in a shared process, whatever the engine supports", async () => {
    const { server, ref } = await open({ isolation: "shared" }, { mounts: true });
    const reason = "mount_points ignored, nothing is mounted: instances that share a process have no sandbox of their own";
    expect(await server.create(ref, { mount_points: MOUNTS })).toMatchObject({ warnings: [reason] });
  });
});
