import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type DockerDaemon, describeNeeding, startDocker } from "@aenv/testing";
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from "vitest";
import { DockerEngine } from "../docker/engine.ts";
import type { Sandbox, SandboxEngine } from "../engine/engine.ts";
import { testRoot } from "../fixtures/test-root.ts";
import { connectInit, type InitConnection } from "../init/connection.ts";
import { OciEngine } from "../oci/engine.ts";
import { testBase } from "../oci/testing/base.ts";
import { type Attack, attacks } from "./testing/attacks.ts";
import { WeakSandboxes } from "./testing/weak-sandbox.ts";
import type { Targets } from "./testing/weaken.ts";

const { signal } = new AbortController();
const WORD = "s3cret-of-the-machine";
const folder = mkdtempSync(join(tmpdir(), "aenv-escape-"));
const listeners: Server[] = [];
let fixed: Omit<Targets, "VICTIM">;
let victim: ChildProcess;
let targets: Targets;

beforeAll(async () => {
  const listen = async (where: object) => {
    const server = createServer((connection) => connection.end());
    listeners.push(server);
    await new Promise<void>((resolve) => server.listen(where, resolve));
    return server.address() as AddressInfo;
  };
  const FILE = join(folder, "file");
  writeFileSync(FILE, `${WORD}\n`, { mode: 0o644 });
  const SOCKET = join(folder, "socket");
  const ABSTRACT = `aenv-escape-${process.pid}`;
  await listen({ path: SOCKET });
  await listen({ path: `\0${ABSTRACT}` });
  fixed = { FILE, WORD, PORT: String((await listen({ host: "127.0.0.1", port: 0 })).port), SOCKET, ABSTRACT };
});
afterAll(() => {
  for (const server of listeners) server.close();
  rmSync(folder, { recursive: true, force: true });
});

beforeEach(() => {
  victim = spawn("sleep", ["600"], { env: { VICTIM_WORD: WORD }, stdio: "ignore" });
  targets = { ...fixed, VICTIM: String(victim.pid) };
});
afterEach(() => victim.kill("SIGKILL"));

interface Kind {
  readonly needs: "crun" | "runc" | "runsc" | "docker";
  readonly title: string;
  readonly open: (home: string) => Promise<SandboxEngine>;
  /** The machine's root is root of its sandboxes. */
  readonly hasMachineUsers?: boolean;
}

let daemon: DockerDaemon | undefined;
const kinds: readonly Kind[] = [
  {
    needs: "crun",
    title: "a sandbox of the oci engine with crun, the default where it is installed",
    open: async (home) => new OciEngine({ home, base: testBase }),
  },
  {
    needs: "runc",
    title: "a sandbox of the oci engine with runc",
    open: async (home) => new OciEngine({ home, runcPath: "runc", base: testBase }),
  },
  {
    needs: "runsc",
    title: "a sandbox of the oci engine with runsc",
    open: async (home) => new OciEngine({ home, runtime: "runsc", base: testBase }),
  },
  {
    needs: "docker",
    title: "a sandbox of the docker engine",
    open: async (home) => {
      daemon = await startDocker();
      return new DockerEngine({ home, socket: daemon.socket, base: async () => testRoot(), capabilityLimit: "docker" });
    },
    hasMachineUsers: true,
  },
];

const variants = kinds.flatMap((kind) => [
  { ...kind, capabilities: "minimal" as const },
  { ...kind, title: `${kind.title}, with the capabilities of Docker`, capabilities: "docker" as const },
]);

for (const { needs, title, open, capabilities, hasMachineUsers = false } of variants)
  describeNeeding(needs, title, () => {
    const isAllowed = ({ ownKernelMay, capableMay }: Attack) =>
      (needs === "runsc" && ownKernelMay === true) ||
      (capabilities === "docker" && (capableMay === "always" || (hasMachineUsers && capableMay !== undefined)));
    let home: string;
    let engine: SandboxEngine;
    let sandbox: Sandbox;
    let init: InitConnection;

    beforeAll(async () => {
      home = mkdtempSync(join(tmpdir(), "aenv-escape-home-"));
      engine = await open(home);
      const spec = { id: "attacker", command: [], variables: {}, labels: {}, capabilities, listening: { kind: "none" } as const };
      sandbox = await engine.create({ ...spec, startTimeoutMs: 60_000 }, signal);
      init = await connectInit(sandbox.commands?.address as Sandbox["address"], engine.commands?.key as never, signal);
    }, 120_000);
    afterAll(async () => {
      await init?.close();
      await sandbox?.destroy();
      await engine?.close();
      await daemon?.[Symbol.asyncDispose]();
      daemon = undefined;
      rmSync(home, { recursive: true, force: true });
    }, 60_000);

    for (const attack of attacks) {
      const { name, script } = attack;
      it.skipIf(isAllowed(attack))(`cannot ${name}`, async () => {
        const clean = "rm -rf /tmp/link /tmp/up /tmp/p /tmp/kmsg";
        const env = { PATH: "/usr/bin:/bin", ...targets };
        const { stdout, stderr } = await init.run({ argv: ["/bin/sh", "-c", `(${script})\n${clean}`], env });
        expect(`${stdout}`).toBe("");
        // The script ran: a missing program would look like a refusal.
        expect(`${stderr}`).not.toMatch(/not found|No such file or directory.*perl/);
        expect(victim.signalCode).toBeNull();
      });
    }
  });

describeNeeding("runc", "without the walls that stop it, a program can", () => {
  let weak: WeakSandboxes;
  beforeAll(() => {
    weak = new WeakSandboxes();
  });
  afterAll(() => weak?.[Symbol.dispose]());

  for (const attack of attacks)
    it(attack.name, async () => {
      expect(await weak.run(attack, targets)).toMatch(/^escaped$/m);
    });
});
