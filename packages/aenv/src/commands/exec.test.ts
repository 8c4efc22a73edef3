import { chmodSync, mkdirSync, readFileSync, statSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { InstanceSandbox, SchedulerClient } from "@aenv/sdk";
import { describeNeeding, temporaryTree } from "@aenv/testing";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Platform, projects, publish, startPlatform } from "../platform-tests/platform.ts";
import { aenv, launcher } from "../testing/cli.ts";

describeNeeding("go", "aenv exec and aenv cp", () => {
  let platform: Platform;
  let id: string;
  beforeAll(async () => {
    platform = await startPlatform({ flags: { processCommands: true } });
    ({ id } = await platform.create(await publish(platform, projects.tally)));
  });
  afterAll(() => platform?.close());

  const at = () => ["--system-url", platform.controlUrl];

  it("print the output of a command, and exit with its exit code", async () => {
    expect(await aenv(["exec", ...at(), id, "echo out; echo err >&2; exit 5"])).toEqual({ code: 5, stdout: "out\n", stderr: "err\n" });
    expect(
      await aenv(["exec", ...at(), "-e", "A=x", "-e", "B=y z", id, "--", "sh", "-c", 'echo "$A $B $1"', "sh", "--json"]),
    ).toMatchObject({
      code: 0,
      stdout: "x y z --json\n",
    });
    expect((await aenv(["exec", ...at(), id, "kill -9 $$"])).code).toBe(137);
  });

  it("print the result as JSON", async () => {
    const { code, stdout } = await aenv(["exec", ...at(), "--json", "--timeout", "200ms", id, "echo begun; sleep 600"]);
    expect(JSON.parse(stdout)).toMatchObject({ id, stdout: "begun\n", timedOut: true });
    expect(code).not.toBe(0);
  });

  it("say what is wrong", async () => {
    const missing = await aenv(["exec", ...at(), id, "no-such-program"]);
    expect([missing.code, missing.stderr]).toEqual([1, expect.stringContaining('no program "no-such-program"')]);
    expect((await aenv(["exec", ...at(), "no-such-instance", "true"])).stderr).toMatch(/not found[\s\S]*aenv instance list/);
    expect(await aenv(["cp", ...at(), "a", "b"])).toMatchObject({ code: 2, stderr: expect.stringContaining("INSTANCE:PATH") });
    expect((await aenv(["cp", ...at(), `${id}:nowhere`, "."], { cwd: "/tmp" })).stderr).toMatch(/there is no .*:nowhere/);
  });

  it("give a command a terminal with the size of this one, and pass on its keys", async () => {
    const scheduler = new SchedulerClient(platform.controlUrl);
    const sandbox = new InstanceSandbox(async () => ({ id, scheduler, control: scheduler.control }));
    // The terminal in which `aenv exec` runs is one of a sandbox too.
    const command = [process.execPath, launcher, "exec", ...at(), id, "--", "sh", "-c", "stty size; read key; echo got $key; exit 6"];
    await using outer = await sandbox.spawn(command, { terminal: { rows: 33, cols: 99 }, endsWithClient: true });
    const output = outer.stdout.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    const until = async (part: string) => {
      while (!text.includes(part)) {
        const { value, done } = await output.read();
        if (done) throw new Error(`the output ended before '${part}': ${text}`);
        text += value;
      }
    };
    await until("33 99");
    await outer.stdin.getWriter().write(Buffer.from("hello\r"));
    await until("got hello");
    expect(await outer.exited).toMatchObject({ exitCode: 6 });
  });

  it("copy a folder to a sandbox and back, with modes, and without links", async () => {
    using tree = temporaryTree({ "from/a.txt": "a", "from/deep/b.txt": "b".repeat(300_000) });
    mkdirSync(join(tree.path, "from/empty"));
    chmodSync(join(tree.path, "from/a.txt"), 0o750);
    symlinkSync("/etc/passwd", join(tree.path, "from/link"));
    const up = await aenv(["cp", ...at(), "--json", "from", `${id}:copied`], { cwd: tree.path });
    expect(JSON.parse(up.stdout)).toMatchObject({ files: 2, bytes: 300_001 });
    expect(up.stderr).toMatch(/not copied.*link/);
    expect((await aenv(["exec", ...at(), id, "cd copied && find . | sort | xargs && ls -l a.txt | cut -c1-10"])).stdout).toBe(
      ". ./a.txt ./deep ./deep/b.txt ./empty\n-rwxr-x---\n",
    );
    mkdirSync(join(tree.path, "back"));
    expect((await aenv(["cp", ...at(), `${id}:copied`, "back"], { cwd: tree.path })).code).toBe(0);
    expect(readFileSync(join(tree.path, "back/copied/deep/b.txt"), "utf8")).toBe("b".repeat(300_000));
    expect(statSync(join(tree.path, "back/copied/a.txt")).mode & 0o777).toBe(0o750);
    expect(statSync(join(tree.path, "back/copied/empty")).isDirectory()).toBe(true);
    expect((await aenv(["cp", ...at(), "from/a.txt", `${id}.main:copied/deep/`], { cwd: tree.path })).code).toBe(0);
    expect((await aenv(["exec", ...at(), id, "cat copied/deep/a.txt"])).stdout).toBe("a");
  });

  it("copy to and from the container that the instance's name ends with", async () => {
    using tree = temporaryTree({ "a.txt": "named" });
    const up = await aenv(["cp", ...at(), "a.txt", `${id}.main:named.txt`], { cwd: tree.path });
    expect(up.code, up.stderr).toBe(0);
    expect((await aenv(["cp", ...at(), `${id}.main:named.txt`, "back.txt"], { cwd: tree.path })).code).toBe(0);
    expect(readFileSync(join(tree.path, "back.txt"), "utf8")).toBe("named");
    // A local path may look like it.
    tree.write({ "b.main:c": "local" });
    expect((await aenv(["cp", ...at(), "./b.main:c", `${id}:local.txt`], { cwd: tree.path })).code).toBe(0);
    expect((await aenv(["exec", ...at(), id, "cat local.txt"])).stdout).toBe("local");
  });
});
