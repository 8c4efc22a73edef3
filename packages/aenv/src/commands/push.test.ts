import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Platform, startPlatform } from "../platform-tests/platform.ts";
import { aenv, installedTree } from "../testing/cli.ts";
import { RunningCommand, run } from "../testing/command.ts";
import { faultyProxy } from "../testing/proxy.ts";

const files = (name: string) => ({
  "config.json": { name, version: "1.0.0" },
  "src/index.ts": 'import { registerTool } from "aenvironment";\nregisterTool({ name: "ask" }, () => 1);\n',
});

describe("push", { timeout: 60_000 }, () => {
  let platform: Platform;
  beforeAll(async () => {
    platform = await startPlatform();
  });
  afterAll(() => platform?.close());

  it("exits with 0 and a warning when the published version cannot be read back", async () => {
    using tree = installedTree(files("unread"));
    await using proxy = await faultyProxy(platform.controlUrl, ({ method, url }) => method === "GET" && url === "/env/unread/1.0.0");
    const { code, stdout, stderr } = await aenv(["push", "--system-url", proxy.url], { cwd: tree.path });
    expect(stderr).toMatch(/^! It is published, but could not be read back .*out of order/);
    expect([code, stdout]).toEqual([0, expect.stringContaining("unread@1.0.0 is published")]);
    expect((await platform.ask("GET", "/env/unread/1.0.0")).status).toBe(200);
  });

  it("publishes under another name and version", async () => {
    using tree = installedTree(files("own-name"));
    const push = (...argv: string[]) => aenv(["push", "--system-url", platform.controlUrl, "--no-verify", ...argv], { cwd: tree.path });
    expect((await push("--name", "other-name", "--version", "2.0.0")).stdout).toContain("other-name@2.0.0 is published");
    expect((await platform.ask("GET", "/env/other-name/2.0.0")).status).toBe(200);
    expect(await push("--name", "no/name")).toMatchObject({ code: 2, stderr: expect.stringContaining("--name my-env") });
  });

  it("publishes an image without a bundle if the project has no code of its own", async () => {
    const artifacts = [{ id: "", type: "image", content: "registry.example.org/team/imaged:1.0.0" }];
    using tree = installedTree({ "config.json": { name: "imaged", version: "1.0.0", artifacts }, "src/env.py": "" });
    const push = (...argv: string[]) => aenv(["push", "--system-url", platform.controlUrl, ...argv], { cwd: tree.path });
    expect((await push("--dry-run")).stdout).toContain("with the image registry.example.org/team/imaged:1.0.0");
    const { code, stdout } = await push();
    expect([code, stdout]).toEqual([0, expect.stringContaining("image registry.example.org/team/imaged:1.0.0")]);
    const { data } = await platform.ask("GET", "/env/imaged/1.0.0");
    expect(data).toMatchObject({ artifacts, bundle_digest: null });
    expect((await push()).stdout).toContain("already published");
  });

  it("prints a next command that works unchanged in a folder without settings", async () => {
    using tree = installedTree(files("printed"));
    const { stdout } = await run(["push", "--system-url", platform.controlUrl], { cwd: tree.path });
    const [, next = ""] = /Start an instance: (aenv .*)/.exec(stdout) ?? [];
    const [command, ...argv] = next.split(" ");
    expect(command).toBe("aenv");
    await using created = new RunningCommand(argv, { cwd: "/", input: "open" });
    const [, call = ""] = await created.prints(/From the shell: aenv (call .*)/);
    expect((await aenv(call.split(" "))).stdout).toMatch(/tool +│ ask/);
    expect((await created.stop()).code).toBe(0);
  });
});
