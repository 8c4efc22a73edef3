import picocolors from "picocolors";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runCli } from "../cli.ts";
import { type Platform, projects, publish, startPlatform } from "../platform-tests/platform.ts";
import { aenv } from "../testing/cli.ts";

describe("aenv status", { timeout: 60_000 }, () => {
  let platform: Platform;
  let env: Record<string, string>;

  beforeAll(async () => {
    platform = await startPlatform({ flags: { access: "on" } });
    const admin = await platform.token("root", "admin", "publisher", "trainer");
    const ada = await platform.token("ada", "trainer");
    await publish(platform, projects.dice, { headers: admin });
    await platform.create("dice", {}, admin);
    const { id } = await platform.create("dice", {}, admin);
    await fetch(`${platform.dataUrl}/env-instance/${id}/health`, { headers: admin });
    env = {
      AENV_SYSTEM_URL: platform.controlUrl,
      AENV_API_KEY: admin.authorization.slice("Bearer ".length),
      ADA: ada.authorization.slice(7),
    };
  });
  afterAll(async () => platform?.close());

  it("shows instances by environment and owner, the queue, pools and rollouts, as the metrics and lists have them", async () => {
    const { stdout, stderr } = await aenv(["status", "--json"], { env });
    expect(stderr).toBe("");
    expect(JSON.parse(stdout)).toMatchObject({
      url: platform.controlUrl,
      ready: true,
      store: "ok",
      disk: "ok",
      instances: { live: 2 },
      queue: { starts: 0, startsForMemory: 0, rollouts: 0, verifications: 0 },
      totals: { started: 2, failedStarts: 0, calls: 1 },
      environments: [{ name: "dice@1.0.0", running: 2, failed: 0 }],
      owners: [{ name: "root", running: 2 }],
      failures: [],
    });
    const text = (await aenv(["status"], { env })).stdout;
    expect(text).toMatch(
      /ready.*Instances +2 live.*Queue +0 starts.*Pools +blank \d of \d ready.*Started +2 in all.*│ dice@1\.0\.0 +│ 0 +│ 2/s,
    );
  });

  it("lists failed instances with their reasons", async () => {
    const headers = { authorization: `Bearer ${env.AENV_API_KEY}` };
    await publish(platform, projects.probe, { headers });
    const started = await platform.ask("POST", "/env-instance", { envName: "probe", environment_variables: { SETUP: "fail" } }, headers);
    expect(started.success).toBe(false);
    const { failures, totals } = JSON.parse((await aenv(["status", "--json"], { env })).stdout);
    expect(failures).toMatchObject([
      { environment: "probe@1.0.0", owner: "root", reason: expect.stringContaining("told to fail in setup") },
    ]);
    expect(totals.failedStarts).toBe(1);
    expect((await aenv(["status"], { env })).stdout).toMatch(/failed instance.*told to fail in setup/s);
  });

  it("needs an administrator's token, and says so", async () => {
    const denied = await aenv(["status"], { env: { ...env, AENV_API_KEY: env.ADA } });
    expect([denied.code, denied.stderr]).toEqual([77, expect.stringContaining("role admin")]);
    expect((await aenv(["status"], { env: { ...env, AENV_API_KEY: "" } })).code).toBe(77);
    expect((await aenv(["status", "--system-url", "http://127.0.0.1:1"])).code).toBe(69);
  });

  it("with --watch refreshes on a terminal until Ctrl-C, within its size, and restores the screen", async () => {
    const stop = new AbortController();
    let written = "";
    const output = {
      colors: picocolors.createColors(false),
      isTty: true,
      columns: 40,
      write: (text: string) => {
        written += text;
        if (written.split("\x1b[H").length === 3) stop.abort();
      },
    };
    const input = {
      isTty: true,
      size: () => ({ rows: 6, cols: 40 }),
      setRaw: () => {},
      onResize: () => () => {},
      chunks: async function* () {},
      close: () => {},
    };
    const terminal = {
      stdout: output,
      stderr: { ...output, isTty: false, write: () => {} },
      input,
      cwd: "/",
      env,
      isInteractive: true,
      stopSignal: () => stop.signal,
    };
    expect(await runCli(["status", "--watch", "--interval", "10ms"], terminal)).toBe(0);
    expect(written.startsWith("\x1b[?1049h") && written.endsWith("\x1b[?1049l")).toBe(true);
    const [, first = "", second = ""] = written.split("\x1b[H");
    expect(second).toMatch(/\/s/);
    expect(first.split("\n").length).toBeLessThanOrEqual(5);
    for (const line of first.split("\n")) expect(line.replaceAll("\x1b[K", "").replace("\x1b[J", "").length).toBeLessThanOrEqual(40);
    expect((await aenv(["status", "--watch"], { env })).stderr).toContain("needs a terminal");
  });
});
