import type { EgressPolicy } from "@aenv/contract";
import { DockerEngine } from "../../docker/engine.ts";
import type { RefusedConnection, Sandbox, SandboxAddress, SandboxEngine, SandboxRuntime, SandboxSpec } from "../../engine/engine.ts";
import { testRoot } from "../../fixtures/test-root.ts";
import { connectInit } from "../../init/connection.ts";
import { openInitKey } from "../../init/key.ts";
import { OciEngine } from "../../oci/engine.ts";
import { testBase } from "../../oci/testing/base.ts";
import { answerCalls } from "./calls.ts";

// A server with an engine in a network namespace of a test, which calls it by messages.

let engine: SandboxEngine | null = null;
const names = new Map<string, string>();
const refused: RefusedConnection[] = [];
const lines: string[] = [];
const { signal } = new AbortController();

const opened = () => {
  if (engine === null) throw new Error("no engine is open");
  return engine;
};

const get = async (id: string): Promise<Sandbox> => {
  const found = (await opened().list()).find((one) => one.id === id);
  if (found === undefined) throw new Error(`no sandbox ${id}`);
  return found;
};

answerCalls({
  name: (name: string, address: string) => void names.set(name, address),
  /** The engine docker, if there is a socket, and oci otherwise. */
  open: (home: string, socket: string | null) => {
    const shared = {
      home,
      resolve: async (name: string) => [names.get(name) ?? []].flat().map((address) => ({ address, ttl: 60 })),
      onRefused: (one: RefusedConnection) => void refused.push(one),
      log: (line: string) => void lines.push(line),
    };
    engine =
      socket === null
        ? new OciEngine({ ...shared, base: testBase })
        : new DockerEngine({ ...shared, socket, base: async () => testRoot() });
  },
  /** Returns where its init listens. */
  create: async (id: string, egress: EgressPolicy, more: Partial<SandboxSpec> = {}) => {
    const spec = { id, command: [], variables: {}, labels: {}, startTimeoutMs: 60_000, listening: { kind: "none" } as const };
    return (await opened().create({ ...spec, egress, ...more }, signal)).commands?.address;
  },
  /** Runs a program in a sandbox, also one of another server, and returns what it printed. */
  run: async (home: string, address: SandboxAddress, argv: readonly string[]) => {
    await using init = await connectInit(address, openInitKey(home), signal);
    const { stdout, stderr } = await init.run({ argv });
    return `${stdout}${stderr}`.trim();
  },
  setEgress: async (id: string, policy: EgressPolicy) => (await get(id)).egress?.set(policy),
  problem: async (policies: readonly EgressPolicy[], runtime?: SandboxRuntime) => opened().egress?.problem?.(policies, runtime) ?? null,
  refused: () => refused,
  log: () => lines,
  list: async () => (await opened().list()).map(({ id }) => id).sort(),
  destroy: async (...ids: readonly string[]) => void (await Promise.all(ids.map(async (id) => (await get(id)).destroy()))),
  close: () => opened().close(),
});
