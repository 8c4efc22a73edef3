import { execFile } from "node:child_process";
import { randomInt } from "node:crypto";
import { cpSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { Environment } from "@aenv/sdk";
import { describeNeeding, pythonPath } from "@aenv/testing";
import { aenv } from "aenvironment/cli-tests";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parseTrajectory } from "../atif/trajectory.ts";
import { readJob } from "../results/job-folder.ts";
import { limitMachine } from "./testing/machine-memory.ts";
import { expectOneService } from "./testing/one-service.ts";
import { startWorld, type World } from "./testing/world.ts";

interface Answer {
  readonly reward: number;
  readonly raw_output: string;
  readonly [field: string]: unknown;
}

const TWO_MINUTES = { timeout: 120_000 };

describeNeeding("runc", "terminal-bench in sandboxes of the engine oci", () =>
  describeNeeding("docker-registry", "and images of a registry", () => {
    let world: World;
    let env: Environment;
    const open = (more: Readonly<Record<string, string>> = {}) =>
      Environment.create(world.ref, { systemUrl: world.platform.controlUrl, environmentVariables: { ...world.variables, ...more } });
    beforeAll(async () => {
      // Clients of the original only support these ports; all of 127/8 is loopback.
      const host = `127.${randomInt(1, 255)}.${randomInt(1, 255)}.${randomInt(2, 255)}`;
      world = await startWorld({ engine: "oci", host, controlPort: 8080, dataPort: 8081 });
      env = await open();
    }, 300_000);
    afterAll(async () => {
      await env?.release();
      await world?.[Symbol.asyncDispose]();
    }, 120_000);

    const bash = async (command: string, one = env) => (await one.callTool("bash", { command })).text;
    const reward = async (one = env) => (await one.callReward({})) as unknown as Answer;
    type Artifacts = { readonly files: Readonly<Record<string, { readonly text: string }>> };
    const artifacts = async () => (await env.callFunction<Artifacts>("episode_artifacts")).files;

    it("gives the oracle 1 and an idle agent 0 on every example, twice", { timeout: 600_000 }, async () => {
      for (const [agent, value] of [
        ["oracle", 1],
        ["noop", 0],
      ] as const) {
        const { compose, ...rewards } = await world.rewards(agent, ["-n", "2"]);
        expect(rewards).toEqual(Object.fromEntries(world.examples.tasks.map((id) => [id, [value, value]])));
        expect(compose).toMatchObject([
          { kind: "unscored", message: expect.stringMatching(/'oci' of this server does not connect sandboxes.*--engine docker/) },
          {},
        ]);
      }
    });

    it("lists the tasks without a sandbox", async () => {
      const tasks = await env.tasks();
      expect(tasks).toHaveLength(world.examples.tasks.length + 1);
      expect(tasks.find(({ id }) => id === "steps-mean")).toMatchObject({ format: "harbor", steps: ["collect", "combine"] });
      await expect(bash("true")).resolves.toContain("has no task");
    });

    it("plays a task with steps: the agent's words end a step, and the files of all steps are kept", { timeout: 60_000 }, async () => {
      await env.reset({ task: "steps-mean" });
      await bash("echo one > first.txt");
      const { messages, status } = await env.episode.reply({ role: "assistant", content: "Done." });
      expect([messages.length, status.done]).toEqual([1, false]);
      expect(await bash("cat extra.txt")).toContain("[exit code 0]");
      expect(await reward()).toMatchObject({ reward: 0.5, steps: [{ rewards: { reward: 1 } }, { rewards: { reward: 0 } }] });
      const files = await artifacts();
      expect(Object.keys(files)).toEqual(
        expect.arrayContaining(["steps/collect/artifacts/app/first.txt", "steps/combine/verifier/reward.txt", "trial.json"]),
      );
    });

    it("changes the agent's network with the step, and with TERMINAL_BENCH_STRICT=false for the tests", { timeout: 60_000 }, async () => {
      const connect = "bash -c 'exec 3<> /dev/tcp/192.0.2.77/80' 2>&1 | grep -c refused; true";
      const isClosed = async (one: Environment) => (await bash(`timeout 2 ${connect}`, one)).startsWith("2");
      await env.reset({ task: "steps-network" });
      expect(await isClosed(env)).toBe(true);
      await env.episode.reply({ role: "assistant", content: "Done." });
      expect(await isClosed(env)).toBe(false);
      const [copy] = (await env.fork(1)) as [Environment];
      expect(await isClosed(copy)).toBe(false);
      await copy.release();
      await using loose = await open({ TERMINAL_BENCH_STRICT: "false", TERMINAL_BENCH_TASK: "network-phases" });
      expect(await reward(loose)).toMatchObject({ reward: 0 });
      expect(await isClosed(loose)).toBe(true);
    });

    it(
      "plays a task with one service as its compose file says: program, limits, hosts, mounts and folders in memory",
      TWO_MINUTES,
      async () => {
        await using one = await open({ TERMINAL_BENCH_TASK: "one-service" });
        await expectOneService(one);
        expect(await reward(one)).toMatchObject({ reward: 0 });
        // The agent cannot change what the tests get of a folder that is mounted read-only.
        await bash("echo 192.0.2.7 17 > /app/answer.txt; echo 18 > /srv/data/number.txt", one);
        expect(await reward(one)).toMatchObject({ reward: 1 });
        const [copy] = (await one.fork(1)) as [Environment];
        expect(await bash("grep -c ' /scratch ' /proc/mounts; grep -c city /etc/hosts; cat /app/answer.txt", copy)).toMatch(
          /^1\n1\n192.0.2.7 17/,
        );
        await copy.release();
      },
    );

    it("does not begin a task whose working directory cannot exist", async () => {
      const folder = join(world.examples.dataDir, "terminal-bench");
      const impossible = join(folder, "impossible");
      cpSync(join(folder, "prebuilt-image"), impossible, { recursive: true });
      try {
        const config = readFileSync(join(impossible, "task.toml"), "utf8");
        writeFileSync(join(impossible, "task.toml"), config.replace("/root", "/etc/passwd/here"));
        const reason = "the working directory /etc/passwd/here cannot be created";
        await expect(open({ TERMINAL_BENCH_TASK: "impossible" })).rejects.toThrow(reason);
      } finally {
        rmSync(impossible, { recursive: true });
      }
    });

    it("is forked with its files and the steps that are done", { timeout: 60_000 }, async () => {
      await env.reset({ task: "steps-mean" });
      await bash("echo one > first.txt");
      await env.episode.reply({ role: "assistant", content: "Done." });
      const [copy] = (await env.fork(1)) as [Environment];
      await bash("rm first.txt", env);
      expect(await bash("cat first.txt", copy)).toContain("one");
      expect(await reward(copy)).toMatchObject({ reward: 0.5, steps: [{ name: "collect" }, { name: "combine" }] });
      await copy.release();
    });

    it("answers with the fields of the original, and returns the files of the trial", { timeout: 60_000 }, async () => {
      await env.reset({ task: "hello-world" });
      await bash("echo Hello, world! > hello.txt");
      const answer = (await env.callReward({ task_name: "hello-world" })) as unknown as Answer;
      expect(answer).toMatchObject({ task_name: "hello-world", status: "success", score: expect.any(Number) });
      expect(answer.raw_output).toContain("short test summary");
      await expect(env.callReward({ task_name: "other" })).rejects.toThrow("'hello-world', not 'other'");
      expect((await artifacts())["verifier/test-stdout.txt"]?.text).toBe(answer.raw_output);
    });

    it("has a terminal, into which keys are typed", { timeout: 60_000 }, async () => {
      await env.reset({ task: "hello-file" });
      const type = async (keystrokes: string, more: object = {}) => (await env.callTool("keystrokes", { keystrokes, ...more })).text;
      expect(await type("GREETING=hello; echo $((40 + 2))", { append_enter: true })).toMatch(/\n42\n/);
      expect(await type("echo $GREETING > greeting.txt; cat greeting.txt", { append_enter: true })).toMatch(/\nhello\n/);
      await type("sleep 600", { append_enter: true, wait_time_sec: 0.3 });
      await type("C-c", { wait_time_sec: 0.5 });
      expect(await type("echo again", { append_enter: true })).toMatch(/\nagain\n/);
      await type("printf '\\033[2J\\033[H'", { append_enter: true });
      expect((await env.callTool("capture_pane", {})).text).not.toContain("again");
      expect(await reward()).toMatchObject({ reward: 1 });
    });

    describeNeeding("python", "published as the original's terminal", () => {
      it("works with a client of its Python SDK, which names the task as a datasource", { timeout: 120_000 }, async () => {
        const { platform, folder } = world;
        const name = ["--name", "terminal", "--version", "0.1.0"];
        const push = ["push", "--work-dir", "terminal-bench", ...name, "--system-url", platform.controlUrl, "--json"];
        expect(await aenv(push, { cwd: folder })).toMatchObject({ code: 0 });
        const client = fileURLToPath(new URL("../../../../interop/python/terminal.py", import.meta.url));
        const given = [client, "prebuilt-image", "echo $((40 + 2))", "LC_ALL=C sort -o words.txt words.txt"];
        const variables = { ...process.env, PYTHONDONTWRITEBYTECODE: "1", AENV_SYSTEM_URL: platform.controlUrl.replace(/:\d+$/, "") };
        const { stdout } = await promisify(execFile)(pythonPath, given, { env: variables, timeout: 100_000 });
        const { content, reward: answer } = JSON.parse(stdout);
        expect(content[0].text).toMatch(/\n42\n/);
        expect(answer).toMatchObject({ task_name: "prebuilt-image", status: "success", score: 1 });
      });
    });

    it("has the job and trial folders of Harbor as results of aenv bench run, and a replay of the run is equal", TWO_MINUTES, async () => {
      const out = join(world.folder, "job");
      const variables = Object.entries(world.variables).flatMap(([name, value]) => ["--var", `${name}=${value}`]);
      const chosen = ["--task", "artifacts", "--task", "steps-mean", "--agent", "oracle", "--out", out, "--run", "job"];
      const server = ["--system-url", world.platform.controlUrl];
      const here = { cwd: world.folder, env: { AENV_DATA_DIR: world.examples.dataDir } };
      const { code, stderr } = await aenv(["bench", "run", "terminal-bench", ...server, ...variables, ...chosen], here);
      expect([code, code === 0 ? "" : stderr]).toEqual([0, ""]);
      const { result, trials } = await readJob(out);
      expect(result?.stats).toMatchObject({ n_completed_trials: 2, n_errored_trials: 0 });
      expect(trials.map((trial) => [trial.result.task_name, trial.result.verifier_result?.rewards])).toEqual([
        ["aenv-examples/artifacts", { reward: 1 }],
        ["aenv-examples/steps-mean", { reward: 1 }],
      ]);
      const [artifacts] = trials;
      const text = (path: string) => readFileSync(join(artifacts?.folder ?? "", path), "utf8");
      expect(JSON.parse(text("artifacts/manifest.json"))).toHaveLength(3);
      expect(parseTrajectory(JSON.parse(text("agent/trajectory.json"))).steps.length).toBeGreaterThan(2);
      const replayed = await aenv(["replay", "job", ...server, "--json"], here);
      expect([replayed.code, JSON.parse(replayed.stdout)]).toMatchObject([0, { equal: 2, unequal: [] }]);
    });

    it("is made of a folder of tasks by aenv import, which publishes it", { timeout: 120_000 }, async () => {
      const from = join(world.examples.dataDir, "terminal-bench");
      const system = ["--system-url", world.platform.controlUrl];
      const imported = await aenv(["import", "harbor", from, "--name", "my-tasks", "--version", "2.0.0", "--push", ...system], {
        cwd: world.folder,
      });
      expect([imported.code, imported.code === 0 ? "" : imported.stderr]).toEqual([0, ""]);
      // The tasks are in the bundle.
      const options = { systemUrl: world.platform.controlUrl, environmentVariables: { ...world.variables } };
      await using own = await Environment.create("my-tasks@2.0.0", { ...options, task: "steps-final" });
      expect(await own.tasks()).toHaveLength(world.examples.tasks.length + 1);
      for (const action of (await own.episode.oracle()) ?? []) {
        if ("tool" in action) await own.callTool(action.tool, action.arguments);
        else await own.episode.reply({ role: "assistant", content: action.say });
      }
      expect(await reward(own)).toMatchObject({ reward: 1 });
    });

    it("gives the verifier's sandbox all that the agent did to files", { timeout: 60_000 }, async () => {
      await env.reset({ task: "users" });
      await bash(
        "id -un > name.txt; mkdir -p deep/er; echo x > deep/er/file; chmod 750 deep/er; chmod 640 name.txt; ln -s /etc/passwd link",
      );
      // The agent is not root: what it removes must be its own.
      expect(await reward()).toMatchObject({ reward: 0 });
      await bash("chmod 644 name.txt");
      expect(await reward()).toMatchObject({ reward: 1 });
    });

    describe("does not let the agent decide by", () => {
      beforeAll(async () => {
        await env.reset({ task: "hello-file" });
      }, 60_000);
      const cheats: readonly (readonly [string, string])[] = [
        ["a replaced program", "rm /usr/bin/cat && printf '#!/bin/bash\\necho hello\\n' > /usr/bin/cat && chmod 755 /usr/bin/cat"],
        ["a program before another one in the PATH", "mkdir -p /usr/local/bin && cp /usr/bin/cat /usr/local/bin/cat"],
        ["a library that every program loads", "cp $(find /usr/lib -name 'libc.so.6') /evil.so; echo /evil.so > /etc/ld.so.preload"],
        ["a start-up file of the shell", "echo 'cat() { echo hello; }; export -f cat' | tee /root/.bashrc > /etc/profile"],
        [
          "a planted reward",
          "mkdir -p /logs/verifier /tests; echo 1 > /logs/verifier/reward.txt; echo 'echo 1 > /logs/verifier/reward.txt' > /tests/test.sh",
        ],
        [
          "a process that goes on",
          "setsid bash -c 'while sleep 0.1; do echo 1 > /logs/verifier/reward.txt; echo hello > /app/x; done' > /dev/null 2>&1 &",
        ],
        [
          "another interpreter",
          "cp /usr/bin/bash /usr/bin/true-bash; printf '#!/usr/bin/true-bash\\necho 1 > /logs/verifier/reward.txt\\n' > /tmp/b; chmod 755 /tmp/b; mv -f /tmp/b /usr/bin/bash",
        ],
      ];
      it.each(cheats)("%s", { timeout: 60_000 }, async (_, command) => {
        await bash(command);
        expect(await reward()).toMatchObject({ reward: 0 });
      });

      it("and says what it did not take", async () => {
        const { changes_left_out } = JSON.parse((await artifacts())["trial.json"]?.text ?? "{}");
        expect(changes_left_out).toEqual(
          expect.arrayContaining([
            "/etc/ld.so.preload",
            "/etc/profile",
            "/root/.bashrc",
            "/usr/bin/bash",
            "/usr/bin/cat",
            "/usr/local/bin/cat",
          ]),
        );
      });
    });

    const plant = (text: string, one: Environment) => bash(`printf '%s' '#!/bin/bash\n${text}' > answer; chmod 755 answer`, one);
    /** A program that uses more and more memory. */
    const FILL = 'x=0123456789abcdef; while :; do x="$x$x"; done';

    describe("gives 0, not no score, to an agent that stops the verification by", () => {
      it("a file on which the tests hang", { timeout: 60_000 }, async () => {
        await using short = await open({ TERMINAL_BENCH_TASK: "hello-file", TERMINAL_BENCH_TIMEOUT_MULTIPLIER: "0.1" });
        await bash("ln -s /dev/stdout greeting.txt", short);
        expect(await reward(short)).toMatchObject({ reward: 0, status: "timeout", error: "the tests took longer than 6 seconds" });
      });

      it.each([
        ["true", "a program of the tests that kills all processes"],
        ["false", "a program of the tests that kills all processes, in its own sandbox"],
      ])("strict: %s: %s", { timeout: 60_000 }, async (strict) => {
        await using killer = await open({ TERMINAL_BENCH_STRICT: strict, TERMINAL_BENCH_TASK: "runs-program" });
        await plant("kill -9 -1", killer);
        expect(await reward(killer)).toMatchObject({ reward: 0, status: "error", error: expect.stringContaining("were killed") });
      });

      it("a program of the tests that uses up its memory", { timeout: 60_000 }, async () => {
        await using eager = await open({ TERMINAL_BENCH_TASK: "runs-program" });
        await plant(FILL, eager);
        expect(await reward(eager)).toMatchObject({ reward: 0, status: "success" });
      });

      it("a full disk", { timeout: 60_000 }, async () => {
        await using full = await open({ TERMINAL_BENCH_TASK: "runs-program" });
        expect(await bash("cat /dev/zero > /fill; echo >&2 status $?", full)).toContain("No space left");
        expect(await reward(full)).toMatchObject({ reward: 0, status: "success" });
        await bash("rm /fill", full);
        await plant("echo 42", full);
        await bash("cat /dev/zero > /fill", full);
        expect(await reward(full)).toMatchObject({ reward: 1 });
      });

      it("an artifact without end, or one that the verifier has no room for", TWO_MINUTES, async () => {
        await using greedy = await open({ TERMINAL_BENCH_TASK: "artifact-tree" });
        for (const bytes of ["2**42", "2**30"]) {
          await bash(`mkdir -p out && perl -e 'open(F, ">", "out/large"); truncate(F, ${bytes}) or die $!'`, greedy);
          expect(await reward(greedy)).toMatchObject({ reward: 0, status: "success" });
        }
      });

      it("a process that changes the tests, where it goes on", { timeout: 60_000 }, async () => {
        await using loose = await open({ TERMINAL_BENCH_STRICT: "false", TERMINAL_BENCH_TASK: "hello-file" });
        await bash("setsid bash -c 'while sleep 0.01; do echo x > /tests/x; done' > /dev/null 2>&1 &", loose);
        expect(await reward(loose)).toMatchObject({ reward: 0, status: "error", error: expect.stringContaining("/tests") });
      });
    });

    it("gives no score if the machine has no more memory while the tests run", { timeout: 60_000 }, async () => {
      await using unlucky = await open({ TERMINAL_BENCH_TASK: "runs-program" });
      await plant(FILL, unlucky);
      using _ = await limitMachine((command) => bash(command, unlucky), 300 * 2 ** 20);
      await expect(reward(unlucky)).rejects.toThrow(
        /a command was interrupted: the kernel ended a process of the sandbox for want of memory/,
      );
    });

    it("verifies in the agent's own sandbox with TERMINAL_BENCH_STRICT=false, where programs are the agent's", {
      timeout: 60_000,
    }, async () => {
      await using loose = await open({ TERMINAL_BENCH_STRICT: "false", TERMINAL_BENCH_TASK: "hello-file" });
      await bash("echo 1 > /logs/verifier/reward.txt", loose);
      expect(await reward(loose)).toMatchObject({ reward: 0 });
      await bash("rm /usr/bin/cat && printf '#!/bin/bash\\necho hello\\n' > /usr/bin/cat && chmod 755 /usr/bin/cat", loose);
      expect(await reward(loose)).toMatchObject({ reward: 1 });
    });
  }),
);

describeNeeding("runc", "terminal-bench on a server whose sandboxes have the users of the machine", () =>
  describeNeeding("docker-registry", "and images of a registry", () => {
    it("leaves tasks unscored with the reason, and plays them without the capabilities of Docker only if it is told so", {
      timeout: 300_000,
    }, async () => {
      await using world = await startWorld({ engine: "oci", sandboxUsers: "machine" }, ["hello-file", "capabilities"]);
      const chosen = ["--task", "hello-file", "--task", "capabilities"];
      const refusal = /sudo, sshd and chroot.*root of this machine.*--task-capabilities docker; TERMINAL_BENCH_CAPABILITIES=minimal/;
      const unscored = [{ kind: "unscored", message: expect.stringMatching(refusal) }];
      expect(await world.rewards("oracle", chosen)).toMatchObject({ "hello-file": unscored, capabilities: unscored });
      const minimal = [...chosen, "--var", "TERMINAL_BENCH_CAPABILITIES=minimal"];
      expect(await world.rewards("oracle", minimal)).toEqual({ "hello-file": [1], capabilities: [0] });
    });
  }),
);
