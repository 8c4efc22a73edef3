import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { projects, publish, startPlatform } from "./platform.ts";

describe("a test platform", () => {
  it("runs published environments, and leaves nothing behind", async () => {
    const platform = await startPlatform();
    try {
      const ref = await publish(platform, projects.tally);
      expect(ref).toBe("tally@1.0.0");
      expect(await platform.create(ref)).toMatchObject({ status: "Running", environment: ref });
    } finally {
      await platform.close();
    }
    expect(existsSync(platform.home)).toBe(false);
  });

  it("responds to a reset with the task, the seed and the first observation, on both ports", async () => {
    await using platform = await startPlatform();
    const { id } = await platform.create(await publish(platform, projects.echo));
    const begun = { task: { id: "greet", split: "train" }, seed: 3, observation: "Echo the word 'hello'." };
    expect(await platform.demand("POST", `/env-instance/${id}/reset`, { task: "greet", seed: 3 })).toMatchObject(begun);
    const body = JSON.stringify({ task: "greet", seed: 3 });
    const headers = { "content-type": "application/json" };
    const answer = await fetch(`${platform.dataUrl}/env-instance/${id}/task/reset`, { method: "POST", headers, body });
    expect(await answer.json()).toMatchObject({ success: true, data: begun });
  });

  it("fails on close if something is left", async () => {
    const platform = await startPlatform({ store: "memory:" });
    mkdirSync(join(platform.home, "sandboxes", ".left"), { recursive: true });
    await expect(platform.close()).rejects.toThrow("has left 1 sandboxes (.left) and 0 processes");
    expect(existsSync(platform.home)).toBe(false);
  });

  it.each(["echo", "probe"] as const)("runs %s in a shared process or in its own process", async (name) => {
    await using platform = await startPlatform();
    for (const isolation of ["instance", "shared"] as const) {
      const ref = await publish(platform, projects[name], { isolation });
      expect(await platform.create(ref)).toMatchObject({ status: "Running", environment: ref });
    }
  });
});
