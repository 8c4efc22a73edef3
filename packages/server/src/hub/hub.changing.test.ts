import { describe, expect, it } from "vitest";
import { ada, openTestHub, root } from "./fixtures/hub.ts";

describe("changing a version", () => {
  it("changes its status but not its content", async () => {
    const { hub, later } = openTestHub();
    const { environment } = await hub.publish(
      { name: "a", version: "1.0.0", tags: ["x"], codeUrl: "oss://x", testConfig: { script: "t" } },
      ada,
    );
    later();
    const updated = await hub.update(
      "a",
      "1.0.0",
      { name: "a", version: "1.0.0", status: "READY", codeUrl: "", tags: null, artifacts: [] },
      ada,
    );
    expect(updated).toMatchObject({
      status: "Ready",
      contentDigest: environment.contentDigest,
      tags: ["x"],
      updatedAt: "2026-01-12T03:25:47.000Z",
    });
    expect(await hub.update("a", "1.0.0", { tags: ["x"], codeUrl: "oss://x", status: "Ready" }, ada)).toEqual(updated);
    for (const patch of [
      { tags: ["y"] },
      { codeUrl: "oss://y" },
      { description: "new" },
      { deployConfig: { cpu: "1" } },
      { artifacts: [{ type: "image", content: "x" }] },
    ]) {
      await expect(hub.update("a", "1.0.0", patch, ada)).rejects.toMatchObject({
        code: "environment.exists",
        message: expect.stringContaining("raise the version"),
      });
    }
    await expect(hub.update("a", "1.0.0", { name: "b" }, ada)).rejects.toThrow("the path says name 'a'");
    await expect(hub.update("a", "1.0.0", { version: "2" }, ada)).rejects.toThrow("the path says version '1.0.0'");
    await expect(hub.update("a", "1.0.0", [], ada)).rejects.toMatchObject({ code: "request.invalid" });
    await expect(hub.update("a", "1.0.1", {}, ada)).rejects.toMatchObject({ code: "environment.not_found" });
  });

  it("is refused for a released one, except its visibility", async () => {
    const { hub } = openTestHub();
    await hub.publish({ name: "a", version: "1.0.0" }, ada);
    expect((await hub.release("a", "1.0.0", ada)).status).toBe("Released");
    await expect(hub.release("a", "1.0.0", ada)).rejects.toMatchObject({
      code: "environment.released",
      message: "Environment already released",
    });
    await expect(hub.update("a", "1.0.0", { status: "Ready" }, ada)).rejects.toMatchObject({ code: "environment.released" });
    await expect(hub.setStatus("a", "1.0.0", "Failed", root)).rejects.toMatchObject({ code: "environment.released" });
    expect((await hub.setVisibility("a", "1.0.0", { visibility: "public" }, ada)).status).toBe("Released");
    expect((await hub.publish({ name: "a", version: "1.0.0", status: "Ready" }, ada)).environment.status).toBe("Released");
  });

  it("loses no concurrent change", async () => {
    const { hub } = openTestHub("sqlite");
    await hub.publish({ name: "a", version: "1.0.0" }, ada);
    const statuses = ["Pending", "Creating", "Created", "Testing", "Ready"];
    await Promise.all(statuses.map((status) => hub.setStatus("a", "1.0.0", status, ada)));
    const [{ history = [] } = {}] = await hub.versions("a", ada);
    expect(history.map(({ detail }) => detail).sort()).toEqual([...statuses, history[0]?.detail].sort());
  });

  it("drops the middle of a long history, never its beginning", async () => {
    const { hub } = openTestHub();
    await hub.publish({ name: "a", version: "1.0.0" }, ada);
    for (let at = 0; at < 150; at += 1) await hub.setStatus("a", "1.0.0", at % 2 === 0 ? "Pending" : "Ready", ada);
    const [{ history = [] } = {}] = await hub.versions("a", ada);
    expect(history).toHaveLength(100);
    expect(history[0]?.what).toBe("published");
    expect(history.at(-1)?.detail).toBe("Ready");
  });
});
