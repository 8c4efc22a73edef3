import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { describeNeeding, Random } from "@aenv/testing";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Sandbox, SandboxRuntime } from "../engine/engine.ts";
import { LayerStore } from "../images/layers.ts";
import { connectInit } from "../init/connection.ts";
import { findHierarchy } from "./cgroups/group.ts";
import { foldersOf } from "./cgroups/hierarchy.ts";
import { homeKey } from "./container.ts";
import { OciEngine } from "./engine.ts";
import { testBase } from "./testing/base.ts";
import { allLeftoversOf } from "./testing/leftovers.ts";
import { type Program, programs } from "./testing/programs.ts";

/** CI runs five, of which runc and runsc, whose starts are slower, have one. From a hundred on, as in the nightly run, each has all. `AENV_CRASH_FIRST` is the first seed. */
const SEEDS = Number(process.env.AENV_CRASH_SEEDS ?? 8);
const FIRST = Number(process.env.AENV_CRASH_FIRST ?? 1);
const FEWER = SEEDS >= 100 ? SEEDS : Math.ceil(SEEDS / 10);
const user = fileURLToPath(new URL("fixtures/use-sandboxes.ts", import.meta.url));

for (const [program, seeds] of [
  ["crun", SEEDS],
  ["runc", FEWER],
  ["runsc", FEWER],
] as const)
  describeNeeding(program, `a server with sandboxes of ${program}`, () => {
    const { runtime } = programs[program];
    let home: string;
    let storeFolder: string;
    let baseLayers: readonly string[];
    let running: ReturnType<typeof startServer> | undefined;
    const counts: Record<string, number> = { adopted: 0 };

    beforeAll(async () => {
      home = realpathSync(mkdtempSync(join(tmpdir(), "aenv-crash-")));
      storeFolder = realpathSync(mkdtempSync(join(tmpdir(), "aenv-crash-store-")));
      const layers = new LayerStore(storeFolder);
      await testBase(layers);
      baseLayers = readdirSync(layers.folder);
    });
    afterAll(async () => {
      // After a failure, there may be some.
      await running?.kill();
      const engine = new OciEngine({ home, storeFolder, base: testBase, ...programs[program] });
      for (const sandbox of await engine.list()) await sandbox.destroy();
      await engine.close();
      for (const folder of [home, storeFolder]) rmSync(folder, { recursive: true, force: true });
    }, 60_000);

    it(
      `or a part of it is killed at ${seeds} random points, and the next one leaves nothing behind`,
      async () => {
        for (let seed = FIRST; seed < FIRST + seeds; seed++)
          await live(seed).catch((cause: unknown) => {
            throw new Error(`seed ${seed}: ${(cause as Error).message}`, { cause });
          });
        console.log(`${seeds} runs with ${program}: ${JSON.stringify(counts)}`);
        // A kind that is never found would go unnoticed.
        if (seeds >= KINDS.length) expect(Object.keys(counts)).toEqual(expect.arrayContaining([...KINDS, "server"]));
      },
      60_000 + seeds * 40_000,
    );

    async function live(seed: number): Promise<void> {
      const random = new Random(seed);
      await using server = startServer(home, storeFolder, program, seed);
      running = server;
      await server.lines(1 + random.below(8));
      // Twice: also while it deals with the first one. As the first one, few seeds have each kind too.
      const first = TARGETS[(seed - 1) % TARGETS.length];
      for (const target of [first, random.pick(TARGETS)]) {
        if (target === undefined || target === "server") break;
        const pid = await find(target, server.pid, home, runtime, random);
        if (pid === null) continue;
        kill(pid);
        count(target);
        await server.lines(random.below(4));
      }
      await pause(random.next() * 40);
      await server.kill();
      count("server");
      await restart(seed);
    }

    /** The next server: everything that it lists works, and nothing is left when its sandboxes are destroyed. */
    async function restart(seed: number): Promise<void> {
      const engine = new OciEngine({ home, storeFolder, base: testBase, ...programs[program] });
      try {
        for (const sandbox of await engine.list()) {
          expect(await says(engine, sandbox)).toBe("here\n");
          count("adopted");
          await sandbox.destroy();
        }
        expect(await engine.list()).toEqual([]);
        // A new one works.
        if (seed % 10 === 0) {
          const spec = { id: "next", command: [], listening: { kind: "none" } as const, variables: {}, labels: {}, startTimeoutMs: 60_000 };
          const sandbox = await engine.create(spec, new AbortController().signal);
          expect(await says(engine, sandbox)).toBe("here\n");
          await sandbox.destroy();
        }
      } finally {
        await engine.close();
      }
      const layers = new LayerStore(storeFolder);
      await layers.collect(new Date(0));
      expect(await layers.holders()).toEqual([]);
      // Nothing of a snapshot either.
      expect(readdirSync(layers.folder)).toEqual(baseLayers);
      // A network that a killed process was in disappears a moment after it.
      await expect.poll(() => allLeftoversOf(home), { timeout: 5_000 }).toEqual([]);
    }

    function count(what: string): void {
      counts[what] = (counts[what] ?? 0) + 1;
    }
  });

async function says(engine: OciEngine, sandbox: Sandbox): Promise<string> {
  const signal = AbortSignal.timeout(20_000);
  await using init = await connectInit(sandbox.commands?.address as Sandbox["address"], engine.commands.key, signal);
  return (await init.run({ argv: ["/bin/sh", "-c", "echo here"] })).stdout.toString();
}

const KINDS = ["runtime", "helper", "sandbox"] as const;
const TARGETS = [...KINDS, "server", "server"] as const;

/** A process to kill: one of the runtime's programs, any other program that the server runs, or one of a sandbox. Null if none appears. */
async function find(
  target: (typeof TARGETS)[number],
  server: number,
  home: string,
  runtime: SandboxRuntime,
  random: Random,
): Promise<number | null> {
  const groups = foldersOf(await findHierarchy(), `/aenv-${homeKey(join(home, "oci"))}`);
  // Each of them is there for some milliseconds of a start at least, and the server starts one sandbox after the other.
  const deadline = Date.now() + 10_000;
  while (Date.now() < deadline) {
    const inside = processesBelow(groups);
    const outside = (pid: number) => runtime === "runc" || !inside.includes(pid);
    const found =
      target === "sandbox"
        ? processesOf(runtime, inside)
        : childrenOf(server).filter((pid) => isRuntime(pid) === (target === "runtime") && outside(pid));
    const pid = random.pick(found);
    if (pid !== undefined) return pid;
    await new Promise(setImmediate);
  }
  return null;
}

/** Also a process that becomes crun, or that crun has become: they have its path as an argument. */
function isRuntime(pid: number): boolean {
  return /^(runc|runsc|exe)/.test(read(`/proc/${pid}/comm`)) || /(?:^|[/\0])crun\0/.test(read(`/proc/${pid}/cmdline`));
}

/** All descendants in the same mount namespace: those of a runtime's program too. Each thread has children of its own. */
function childrenOf(pid: number): number[] {
  return namesIn(`/proc/${pid}/task`)
    .flatMap((thread) => read(`/proc/${pid}/task/${thread}/children`).split(" ").filter(Boolean).map(Number))
    .flatMap((child) => [child, ...childrenOf(child)]);
}

/**
 * Processes of sandboxes. Of gVisor's only the kernel and its file server: a sandbox that has lost a process in which the kernel runs
 * programs answers, but starts no program any more.
 */
function processesOf(runtime: SandboxRuntime, all: readonly number[]): number[] {
  if (runtime === "runc") return [...all];
  return all.filter((pid) => read(`/proc/${pid}/cmdline`).match(/^runsc-(?:sandbox|gofer)/) && !all.includes(parentOf(pid)));
}

function parentOf(pid: number): number {
  return Number(/^PPid:\s+(\d+)$/m.exec(read(`/proc/${pid}/status`))?.[1] ?? 0);
}

function processesBelow(groups: readonly string[]): number[] {
  return groups.flatMap((group) =>
    namesIn(group).flatMap((name) =>
      read(join(group, name, "cgroup.procs"))
        .split("\n")
        .filter(Boolean)
        .map(Number),
    ),
  );
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {}
}

/** The program that uses sandboxes, in a process of its own. */
function startServer(home: string, storeFolder: string, program: Program, seed: number) {
  const child: ChildProcess = spawn(process.execPath, [user, home, storeFolder, program, String(seed)], {
    stdio: ["ignore", "pipe", "inherit"],
    // Most of a run would be the start of Node.
    env: { ...process.env, NODE_COMPILE_CACHE: join(storeFolder, "compiled") },
  });
  const exited = once(child, "exit");
  let seen = 0;
  let wake = () => {};
  child.stdout?.on("data", (data: Buffer) => {
    seen += data.toString().split("\n").length - 1;
    wake();
  });
  void exited.then(() => wake());
  const end = async () => {
    child.kill("SIGKILL");
    await exited;
  };
  return {
    pid: child.pid as number,
    /** Until it has printed so many more lines. */
    lines: async (more: number) => {
      const until = seen + more;
      while (seen < until) {
        if (child.exitCode !== null) throw new Error(`the server ended with ${child.exitCode}`);
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    },
    kill: end,
    [Symbol.asyncDispose]: end,
  };
}
