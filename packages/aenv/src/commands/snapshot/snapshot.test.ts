import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { callTool, urlOf } from "../../platform-tests/calls.ts";
import { type Platform, projects, publish, startPlatform } from "../../platform-tests/platform.ts";
import { aenv } from "../../testing/cli.ts";
import { type CommandOptions, runJson } from "../../testing/command.ts";

describe("aenv snapshot", { timeout: 180_000 }, () => {
  let platform: Platform;
  beforeAll(async () => {
    platform = await startPlatform({ flags: { maxSnapshots: 2 } });
    await publish(platform, projects.probe);
  });
  afterAll(() => platform?.close());

  const at = (options: CommandOptions = {}) => ({
    ...options,
    env: { HOME: "/nonexistent", AENV_SYSTEM_URL: platform.controlUrl, ...options.env },
  });

  it("stores an instance, lists it, starts others from it, and deletes it", async () => {
    const parent = await platform.create("probe");
    await callTool(urlOf(platform, parent.id), "count");
    const made = await aenv(["snapshot", "create", parent.id, "--name", "one"], at());
    expect(made.stdout).toMatch(/is stored as one\n[\s\S]*one .* probe@1\.0\.0 .* state .* Ready/);
    expect(made.stdout).toContain("aenv instance create probe --snapshot one");
    const unnamed = (await runJson(["snapshot", "create", parent.id, "--json"], at())) as { id: string; name: string };
    expect(unnamed).toMatchObject({ fidelity: "state", name: unnamed.id, instance: parent.id });
    expect((await aenv(["snapshot", "list"], at())).stdout).toMatch(/one .* probe@1\.0\.0[\s\S]*snap-/);
    const started = await aenv(["instance", "create", "probe", "--snapshot", "one", "--keep-alive"], at());
    expect(started.stdout).toMatch(/Started from +one \(state\)/);
    const record = (await runJson(["instance", "create", "probe", "--snapshot", unnamed.id, "--keep-alive", "--json"], at())) as {
      id: string;
    };
    expect(record).toMatchObject({ started_from: { id: unnamed.id, fidelity: "state" } });
    expect(await callTool(urlOf(platform, record.id), "count")).toMatchObject({ text: "2" });

    const full = await aenv(["snapshot", "create", parent.id], at());
    expect(full.stderr).toMatch(/has stored 2 snapshots and may store 2; delete snapshots/);
    expect(full.stderr).not.toContain("Delete instances");
    expect(await runJson(["snapshot", "delete", "one", unnamed.id, "--yes", "--json"], at())).toEqual({ deleted: ["one", unnamed.id] });
    expect((await aenv(["snapshot", "list"], at())).stdout).toContain("No snapshots.");
  });

  it.each([
    [["snapshot", "create", "nope"], 1, "aenv instance list"],
    [["snapshot", "create", "nope", "--name", "a/b"], 2, "must be 1 to 63 letters"],
    [["snapshot", "create", "nope", "--fidelity", "all"], 2, "Allowed choices are state, files, memory"],
    [["snapshot", "delete", "nope", "--yes"], 1, "aenv snapshot list"],
    [["instance", "create", "probe", "--snapshot", "nope"], 1, "aenv snapshot list"],
  ])("prints the problem of %j and the next step", async (argv, code, hint) => {
    const ended = await aenv(argv, at());
    expect(ended.stderr).toContain(hint);
    expect(ended.code).toBe(code);
  });
});
