import { describeNeeding } from "@aenv/testing";
import { afterAll, beforeAll, expect, it } from "vitest";
import { callTool, urlOf } from "./calls.ts";
import { type Platform, projects, publish, startPlatform } from "./platform.ts";

describeNeeding("runc", "the kit's tools in the sandbox of a task, with the engine oci", () => {
  let platform: Platform;
  let ref: string;
  beforeAll(async () => {
    platform = await startPlatform({ flags: { engine: "oci" } });
    ref = await publish(platform, projects.workshop);
  }, 120_000);
  afterAll(() => platform?.close(), 60_000);

  it("run commands and change files, with the rights of one user, and the reward sees the result", async () => {
    const { id } = await platform.create(ref, { environment_variables: { AGENT_USER: "1000" } });
    const call = async (name: string, args: object) => (await callTool(urlOf(platform, id), name, args)).text;
    expect(await call("bash", { command: "pwd; id -u; echo no >&2; exit 3" })).toBe("/tmp/work\n1000\nno\n[exit code 3]");
    expect(await call("bash", { command: "head -c 3000000 /dev/zero | tr '\\0' x" })).toMatch(
      /^x{16000}\n\[\.\.\. \d+ bytes left out \.\.\.\]\nx{16000}\n\[exit code 0\]$/,
    );
    expect(await call("bash", { command: "sleep 600 & echo started; sleep 600", timeout: 1 })).toBe(
      "started\n[ended after 1 s, the timeout of this call]",
    );
    expect(await call("write_file", { path: "notes/a.txt", content: "one\ntwo\n" })).toBe("Wrote 8 bytes to 'notes/a.txt'.");
    expect(await call("edit_file", { path: "notes/a.txt", old_text: "two", new_text: "2" })).toBe(
      "Replaced 1 occurrence in 'notes/a.txt'.",
    );
    expect(await call("read_file", { path: "/tmp/work/notes/a.txt" })).toBe("one\n2\n");
    expect(await call("list_files", { depth: 2 })).toBe("notes/\nnotes/a.txt");
    expect(await call("read_file", { path: "/root-only" })).toContain("Permission denied");
    expect(await callTool(urlOf(platform, id), "write_file", { path: "/etc/x", content: "" })).toMatchObject({ isError: true });
    const reward = async () =>
      ((await (await fetch(urlOf(platform, id, "/task/reward"), { method: "POST", body: "{}" })).json()) as { data: unknown }).data;
    const before = await reward();
    await call("write_file", { path: "answer", content: "42\n" });
    expect([before, await reward()]).toEqual([0, 1]);
    await platform.demand("DELETE", `/env-instance/${id}`);
  }, 60_000);
});
