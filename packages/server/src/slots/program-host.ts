import { hostRoutes, PlatformError } from "@aenv/contract";
import type { Sandbox, SandboxEngine } from "@aenv/sandbox";
import { z } from "zod";
import type { EnvironmentVersion } from "../hub/hub.ts";
import { requestSandbox, type SandboxClients } from "../sandboxes/client.ts";
import { responseLimits } from "../sandboxes/response-limits.ts";
import { type HostKind, programGroup } from "./hosts.ts";
import type { InitialState } from "./initial-state.ts";
import type { Pool } from "./pool.ts";
import { explainMissing, type Program } from "./program.ts";
import type { RuntimePolicy } from "./runtimes.ts";
import { programRequestFor } from "./start-request.ts";

export interface ProgramHostOptions {
  readonly pool: Pool;
  readonly engine: Pick<SandboxEngine, "can">;
  readonly clients: SandboxClients;
  readonly runtimes: RuntimePolicy;
  readonly startTimeoutMs: number;
}

interface Wanted {
  readonly environment: EnvironmentVersion;
  readonly owner: string;
  readonly initial: InitialState;
  /** The unpacked bundle; undefined if there is none. */
  readonly folder: string | undefined;
}

/** What a program that many instances may share answers to `GET /env-instance`. */
const shareable = z.looseObject({ keepsStateInModules: z.literal(false) });

/** The process of a program that instances share. One that cannot be shared is an error. */
export function programHost(program: Program, { environment, owner, initial, folder }: Wanted, options: ProgramHostOptions): HostKind {
  const { pool, engine, runtimes } = options;
  const unsupported = (why: string) => new PlatformError("instance.unsupported", `${environment.name}@${environment.version} ${why}`);
  if (initial.taskSandboxes !== undefined)
    throw unsupported(
      'is a program that shares its process, which opens no sandboxes; leave out deployConfig.taskSandboxes and the second container, or set deployConfig.isolation to "instance"',
    );
  const resources = pool.resourcesFor(environment);
  const request = programRequestFor(program, environment, owner, initial, { isolation: "shared", runtimes, resources });
  const start = async (signal: AbortSignal): Promise<Sandbox> => {
    const sandbox = await pool.program({ ...request, folder }, signal).catch((error: unknown) => {
      throw explainMissing(error, program, engine);
    });
    if (await isShareable(program, sandbox, options, signal)) return sandbox;
    await sandbox.destroy();
    signal.throwIfAborted();
    throw unsupported(
      'asks for shared processes, but its program does not answer GET /env-instance with "keepsStateInModules": false; let it serve many instances (docs/guides/programs.md), or set deployConfig.isolation to "instance"',
    );
  };
  return { group: programGroup(request), start };
}

function isShareable(
  { spec: { listening } }: Program,
  { id, address }: Sandbox,
  { clients, startTimeoutMs }: ProgramHostOptions,
  signal: AbortSignal,
): Promise<boolean> {
  if (listening.kind === "none") return Promise.resolve(false);
  const { method, path } = hostRoutes.describe;
  const request = { method, path, maxBytes: responseLimits.offer, timeoutMs: startTimeoutMs, signal } as const;
  return requestSandbox(clients, id, address, request).then(
    (answer) => shareable.safeParse(answer).success,
    () => false,
  );
}
