import type { KeyObject } from "node:crypto";
import { posix } from "node:path";
import { isPlatformError } from "@aenv/contract";
import type { CommandDefaults, Listening, SandboxAddress, SandboxSpec } from "../engine/engine.ts";
import type { InitConnection } from "../init/connection.ts";
import { isInitError } from "../init/error.ts";
import { readArchive } from "../init/folder.ts";
import { connectStartingInit } from "../init/ready.ts";
import { waitUntilReady } from "../lifecycle/readiness.ts";
import { startWithin } from "../lifecycle/start-limits.ts";
import { APPENDED, healthPathOf, outsideOnly, tellAddress } from "../spec/listening.ts";
import { readDefaults } from "./defaults.ts";
import { StartFailure } from "./failures.ts";
import { templateCommand } from "./pod/container.ts";
import { PROGRAM_PORT } from "./pod/pod.ts";
import { progressOf } from "./pod/progress.ts";
import type { Pod } from "./pod/types.ts";
import type { PodTable } from "./pods.ts";
import type { ReadyDefaults } from "./ready.ts";
import type { KubernetesSandbox } from "./sandbox.ts";

export interface PodStart {
  readonly spec: SandboxSpec;
  readonly pod: Pod;
  readonly template: Pod;
  readonly pods: PodTable;
  readonly key: KeyObject;
  readonly unschedulableMs: number;
  readonly signal: AbortSignal;
  /** Removes a pod that only waits, so that there may be room for this one; false if there is none. */
  readonly makeRoom: () => Promise<boolean>;
  /** Called when the pod runs and has an address. */
  readonly open: (ip: string) => KubernetesSandbox;
  /** Notes in the cluster that other servers may adopt the pod, while the program gets ready: a server that finds it without an instance ends it. */
  readonly note: (sandbox: KubernetesSandbox, defaults: ReadyDefaults, signal: AbortSignal) => Promise<void>;
}

/** What a start waits for, for the message of one that took too long. */
interface Stage {
  detail: string;
}

/** Larger archives of folders are not read before they are sent. */
const MAX_ARCHIVE_BYTES = 4 * 1024 * 1024;

/** Waits until the pod runs, starts the program in it, and waits until the program answers. */
export async function startInPod(start: PodStart): Promise<void> {
  const { spec, signal, open, note } = start;
  const stage: Stage = { detail: "the pod was not started" };
  const limits = {
    id: spec.id,
    signal,
    timeoutMs: spec.startTimeoutMs,
    timedOut: () => new StartFailure(`${stage.detail} within ${spec.startTimeoutMs} ms`),
    waitsFor: () => stage.detail,
  };
  const archive = spec.firstFolder === undefined ? undefined : readArchive(spec.firstFolder, MAX_ARCHIVE_BYTES).catch(() => undefined);
  try {
    await startWithin(limits, async (stop, fail) => {
      const sandbox = open(await untilPlaced(start, stage, stop));
      sandbox.exited.then(({ reason }) => fail(() => new StartFailure(reason)));
      const second = sandbox.second === undefined ? undefined : await startSecond(start, sandbox.second, stage, stop);
      const own = sandbox.state.hasInit ? await startProgram(start, sandbox, archive, stage, stop) : { cwd: "/", env: {} };
      const defaults = { ...own, ...(second !== undefined && { second }) };
      await Promise.all([untilAnswering(spec.listening ?? APPENDED, sandbox, stage, stop), note(sandbox, defaults, stop)]);
    });
  } catch (error) {
    // A sandbox that has just ended cuts connections before the cluster reports why.
    throw isPlatformError(error, "sandbox.lost") ? await lostReason(start, stage, error) : error;
  }
}

/** The scheduler looks again when a pod has gone. */
const PLACED_MS = 5_000;

/** While no node has room for the pod, pods that only wait make room. */
async function untilPlaced(start: PodStart, stage: Stage, signal: AbortSignal): Promise<string> {
  for (let stuckAt = 0; ; stuckAt = Date.now() + PLACED_MS) {
    try {
      return await untilRunning(start, stuckAt, stage, signal);
    } catch (error) {
      if (!(error instanceof StartFailure && error.isCapacity) || !(await start.makeRoom())) throw error;
    }
  }
}

async function untilRunning({ pods, pod, unschedulableMs }: PodStart, stuckAt: number, stage: Stage, signal: AbortSignal): Promise<string> {
  const { name, uid } = pod.metadata;
  return pods.until(
    name,
    (now) => {
      if (now === null || now.metadata.uid !== uid) throw new StartFailure("the pod was deleted by another client of the cluster");
      const progress = progressOf(now, Date.now(), unschedulableMs);
      switch (progress.kind) {
        case "running":
          return progress.ip;
        case "waiting":
          stage.detail = `the pod was not started (${progress.detail})`;
          return undefined;
        case "stuck":
          if (progress.isCapacity && Date.now() < stuckAt) return undefined;
          throw new StartFailure(progress.reason, progress.isCapacity);
        case "ended":
          throw new StartFailure(describeEarlyEnd(progress.end));
      }
    },
    signal,
  );
}

function describeEarlyEnd(end: Extract<ReturnType<typeof progressOf>, { kind: "ended" }>["end"]): string {
  switch (end.kind) {
    case "cluster":
      return end.reason;
    case "out-of-memory":
      return "it ran out of memory before its program was started";
    case "exit":
      return `its container ended with exit code ${end.code} before its program was started`;
  }
}

async function startSecond({ key }: PodStart, second: KubernetesSandbox, stage: Stage, signal: AbortSignal): Promise<CommandDefaults> {
  stage.detail = "the init of the second container did not answer";
  const init = await connectStartingInit(second.commands?.address as SandboxAddress, key, signal);
  second.useConnection(init);
  return readDefaults(init, signal);
}

/** Gives the program to the init. */
async function startProgram(
  start: PodStart,
  sandbox: KubernetesSandbox,
  archive: Promise<Buffer | undefined> | undefined,
  stage: Stage,
  signal: AbortSignal,
): Promise<CommandDefaults> {
  stage.detail = "the init of the pod did not answer";
  if (sandbox.commands === undefined) throw new StartFailure("the pod has no init");
  const init = await connectStartingInit(sandbox.commands.address, start.key, signal);
  sandbox.useConnection(init);
  stage.detail = "the program was not started";
  const { spec } = start;
  // With the caller's signal: it may go on after the start.
  if (spec.firstFolder !== undefined && archive !== undefined) sandbox.sendAhead(spec.firstFolder, archive, start.signal);
  const defaults = await readDefaults(init, signal);
  if (sandbox.state.startsEarly) return defaults;
  const folder = spec.folder === undefined ? null : await sandbox.addFolder(spec.folder, signal);
  const program = programOf(start, sandbox.ip);
  if (program === null) return defaults;
  await runMain(init, {
    argv: program.command,
    // The operator's template may say otherwise.
    env: { ...(spec.listening?.kind === "port" && outsideOnly), ...defaults.env, ...program.variables },
    cwd: folder === null ? defaults.cwd : posix.join(folder, spec.cwd ?? "."),
  });
  return defaults;
}

async function runMain(init: InitConnection, program: { argv: readonly string[]; env: Readonly<Record<string, string>>; cwd: string }) {
  try {
    await init.startMain({ ...program, inheritOutput: true, oneOutput: true });
  } catch (error) {
    if (!isInitError(error)) throw error;
    const why = error.code === "no_program" ? "no such program in the image" : error.message;
    throw new StartFailure(`cannot run '${program.argv[0]}': ${why}`);
  }
}

/** The program with where to listen; null for a sandbox that is only used for commands. */
function programOf({ spec, template }: PodStart, ip: string): Pick<SandboxSpec, "command" | "variables"> | null {
  const listening = spec.listening ?? APPENDED;
  const command = spec.command.length > 0 ? spec.command : templateCommand(template, spec.arguments);
  if (command.length === 0 || (listening.kind === "none" && spec.command.length === 0)) return null;
  const host = ip.includes(":") ? "::" : "0.0.0.0";
  if (listening.kind === "port") return tellAddress({ ...spec, command }, { host, port: listening.port });
  const where = listening.kind === "appended" ? ["--host", host, "--port", String(PROGRAM_PORT)] : [];
  return { command: [...command, ...where], variables: spec.variables };
}

async function untilAnswering(listening: Listening, sandbox: KubernetesSandbox, stage: Stage, signal: AbortSignal): Promise<void> {
  if (listening.kind === "none") return;
  const request = `GET ${healthPathOf(listening)}`;
  const port = sandbox.state.port;
  stage.detail = `the program did not answer ${request} on port ${port}`;
  await waitUntilReady(
    () => sandbox.address,
    listening,
    signal,
    (status) => {
      stage.detail = `the program answered ${status} to ${request}`;
    },
  );
}

/** Waits a little for the cluster to say why the pod has ended. */
async function lostReason({ pods, pod }: PodStart, stage: Stage, lost: unknown): Promise<unknown> {
  const deadline = AbortSignal.timeout(LOST_MS);
  try {
    return await pods.until(
      pod.metadata.name,
      (now) => {
        if (now === null) return new StartFailure("the pod was deleted by another client of the cluster");
        const progress = progressOf(now, Date.now(), 0);
        return progress.kind === "ended" ? new StartFailure(`${describeEarlyEnd(progress.end)}; ${stage.detail}`) : undefined;
      },
      deadline,
    );
  } catch {
    return lost;
  }
}

const LOST_MS = 10_000;
