import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { loadEnvironment, serve } from "@aenv/kit";
import { describe, expect, it } from "vitest";
import { episodeProgram } from "../platform-tests/fixtures/episode-program.ts";
import { aenv, installedTree, launcher, repo } from "../testing/cli.ts";
import { RunningCommand } from "../testing/command.ts";

const echo = join(repo, "environments/echo");

interface Results {
  readonly environment: string;
  readonly ownTests: boolean | null;
  readonly results: readonly { readonly name: string; readonly result: string; readonly detail: string | null }[];
}

async function results(...args: string[]): Promise<Results & { readonly code: number }> {
  const { code, stdout } = await aenv(["test", ...args, "--json"], { env: process.env });
  return { code, ...(JSON.parse(stdout) as Results) };
}

const failed = ({ results: all }: Results) => all.filter(({ result }) => result === "failed").map(({ name }) => name);

describe("aenv test", { timeout: 120_000 }, () => {
  it("passes for a built-in environment: routes, oracle, noop, replay, snapshots, several instances and hostile requests", async () => {
    const { code, stdout } = await aenv(["test", echo], { env: process.env });
    expect([code, stdout]).toEqual([0, expect.stringMatching(/26 checks passed, none failed, 4 left out\n$/)]);
    expect(stdout).toContain("✓ its oracle reaches the pass reward in every task that is played (greet 1, recall 1, be-brief 1)");
    expect(stdout).toContain("✓ the same actions lead to the same digests and the same reward again (7 actions)");
  });

  it("passes for an instance at an address", async () => {
    const { name, version, definition } = await loadEnvironment(echo);
    await using served = await serve(definition, { name, version, port: 0 });
    expect(failed(await results(served.url))).toEqual([]);
    const { code, stderr } = await aenv(["test", "http://127.0.0.1:9"], { env: process.env });
    expect([code, stderr]).toEqual([69, expect.stringContaining("aenv run")]);
  });

  it.each([
    [
      "while it waits for an answer",
      { "server.mjs": "server.on('request', (request, response) => { if (request.url === '/health') response.end('{}'); });" },
    ],
    ["while the project's own tests run", { "package.json": { scripts: { test: "echo they run; sleep 1000" } }, "server.mjs": "" }],
  ])("exits with 130 when it is stopped %s, and reports no failed check", async (_, { "server.mjs": code, ...files }) => {
    using project = installedTree({
      "config.json": { name: "slow", version: "1.0.0", runtime: { command: ["node", "server.mjs"], healthPath: "/health" } },
      "server.mjs": `import { createServer } from "node:http";\nconst server = createServer().listen(process.env.PORT, process.env.HOST);\n${code}`,
      ...files,
    });
    await using running = new RunningCommand(["test"], { cwd: project.path });
    await running.prints(/they run|✓ reports that it is healthy/);
    const { code: exit, stdout, stderr } = await running.stop();
    expect([exit, stderr]).toEqual([130, "✖ stopped before all checks had run\n"]);
    expect(stdout).not.toContain("✗");
  });

  it("passes for an instance on a server inside of the command, behind its gateway", async () => {
    expect(failed(await results(echo, "--engine", "process"))).toEqual([]);
  });

  it("fails where the oracle does not reach the pass reward that is given", async () => {
    const found = await results(echo, "--pass-reward", "2", "--tasks", "1");
    expect([found.code, failed(found)]).toEqual([1, ["its oracle reaches the pass reward in every task that is played"]]);
    expect(found.results.find(({ result }) => result === "failed")?.detail).toContain("--pass-reward");
    const { code, stderr } = await aenv(["test", echo, "--pass-reward", "high"], { env: process.env });
    expect([code, stderr]).toEqual([2, expect.stringContaining("'high'")]);
  });

  it("finds what a program answers differently than the contract says", async () => {
    const changes: readonly (readonly [string, string, string, string])[] = [
      [
        "task.not_found",
        "task.gone",
        "refuses an unknown task with task.not_found, and goes on with the episode before",
        "aenv-no-such-task",
      ],
      ["{ digest: createHash", "{ digest: Math.random() + createHash", "begins equally with the same task and seed", "two resets to"],
      [
        "LIES && { n: 99 }",
        "{ n: 99 }",
        "restores a snapshot to an equal digest, from which it goes on equally",
        "differs from that of the stored",
      ],
      ["reached: false };", "reached: true };", "reports a status, which is not done after a reset", "over after a reset"],
      [
        "seed: s.seed, observation",
        "seed: 0, observation",
        "begins the task and the seed that a reset names, and keeps the task that it does not name",
        "the seed 7",
      ],
      [
        "reward: s.reached ? 1 : 0",
        'reward: "much"',
        "computes a reward that is a number, with components that are numbers",
        "must be a number",
      ],
      [
        "reward: s.reached ? 1 : 0",
        "reward: s.reached || s.n === 0 ? 1 : 0",
        "an agent that does nothing stays below the pass reward",
        "is 1 before an agent has done anything",
      ],
      [
        "s.reached = s.n === s.goal;",
        "s.reached = s.n === s.goal; s.at = process.hrtime.bigint().toString();",
        "the same actions lead to the same digests and the same reward again",
        "the state after action 1 has another digest",
      ],
      ["total: chosen.length", "total: 1", "lists its tasks by page and by split", "a total of 1"],
      [
        "writeHead(202)",
        "writeHead(200)",
        "answers MCP's initialize, ping and notifications, and an unknown method with an error",
        "with 202",
      ],
    ];
    await Promise.all(
      changes.map(async ([from, to, name, detail]) => {
        using project = episodeProgram();
        const file = join(project.path, "server.mjs");
        const code = readFileSync(file, "utf8");
        expect(code).toContain(from);
        writeFileSync(file, code.replaceAll(from, to));
        const { results: all } = await results(project.path);
        expect([name, all.find((one) => one.name === name)]).toEqual([
          name,
          { name, result: "failed", detail: expect.stringContaining(detail) },
        ]);
      }),
    );
  });

  it("runs the project's own tests first, once, also if npm test starts the command, and fails with them", async () => {
    const config = { name: "adder", version: "1.0.0", runtime: { command: ["node", "server.mjs"] }, deployConfig: {} };
    using program = episodeProgram();
    using project = installedTree({
      "config.json": { ...config, deployConfig: { environmentVariables: { HOSTS: "no" } } },
      "server.mjs": readFileSync(join(program.path, "server.mjs"), "utf8"),
      "package.json": { scripts: { test: `echo own tests && exit $FAIL && ${process.execPath} ${launcher} test` } },
    });
    const count = (text: string) => text.match(/^own tests$/gm)?.length ?? 0;
    const run = (file: string, args: string[], env: Record<string, string>) =>
      spawnSync(file, args, { cwd: project.path, encoding: "utf8", env: { ...process.env, NO_COLOR: "1", HOSTS: "no", ...env } });
    const outer = run(process.execPath, [launcher, "test"], { FAIL: "" });
    expect(outer.stdout).toContain("its own tests passed");
    const byNpm = run("npm", ["test"], { FAIL: "" });
    expect([count(outer.stdout), count(byNpm.stdout)]).toEqual([1, 1]);
    const broken = run(process.execPath, [launcher, "test"], { FAIL: "3" });
    expect([broken.status, broken.stdout]).toEqual([1, expect.stringContaining("its own tests failed")]);
  });
});
