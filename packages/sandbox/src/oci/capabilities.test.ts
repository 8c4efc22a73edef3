import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describeNeeding, mountUntranslatedDisk, temporaryTree } from "@aenv/testing";
import { afterAll, afterEach, expect, it } from "vitest";
import type { Sandbox, SandboxSpec } from "../engine/engine.ts";
import { writeLayout } from "../images/fixtures/layout.ts";
import { connectInit } from "../init/connection.ts";
import { OciEngine } from "./engine.ts";
import type { OciEngineOptions } from "./options.ts";
import { testBase } from "./testing/base.ts";
import { leftoversOf } from "./testing/leftovers.ts";
import { programs } from "./testing/programs.ts";

const storeFolder = mkdtempSync(join(tmpdir(), "aenv-oci-store-"));
afterAll(() => rmSync(storeFolder, { recursive: true, force: true }));

const { signal } = new AbortController();
const opened: { engine: OciEngine; home: string }[] = [];

afterEach(end);

/** Ends all engines, and with them their sandboxes. */
async function end(): Promise<void> {
  const left: string[] = [];
  for (const { engine, home } of opened.splice(0).reverse()) {
    for (const sandbox of await engine.list()) await sandbox.destroy();
    await engine.close();
    left.push(...(await leftoversOf(home)));
    rmSync(home, { recursive: true, force: true });
  }
  expect(left).toEqual([]);
}

function open(options: Partial<OciEngineOptions> = {}): OciEngine {
  const home = options.home ?? realpathSync(mkdtempSync(join(tmpdir(), "aenv-oci-")));
  const engine = new OciEngine({ base: testBase, storeFolder, ...options, home });
  opened.push({ engine, home });
  return engine;
}

let made = 0;
function create(engine: OciEngine, more: Partial<SandboxSpec> = {}): Promise<Sandbox> {
  const spec = { id: `s-${++made}`, command: [], variables: {}, labels: {}, listening: { kind: "none" } as const, startTimeoutMs: 30_000 };
  return engine.create({ ...spec, ...more }, signal);
}

const capabilities = "docker";

/** What sudo, chroot and the server of SSH do. Each line is `yes` or the reason why not. */
const NEEDS = {
  "run a set-user-id program as another user": `cp /usr/bin/perl /tmp/suid && chmod 4755 /tmp/suid && perl -e '$( = $) = 1000; $< = $> = 1000; exec "/tmp/suid", "-e", "print \\$> == 0 ? q(yes) : qq(the user is \\$>)"'`,
  "change the root of a process": `perl -e 'print chroot("/tmp") ? "yes" : $!'`,
  "leave its privileges in a changed root, as sshd does": `perl -e 'chroot("/tmp") or exit print $!; $( = $) = 1000; $> = $< = 1000; print $> == 1000 ? "yes" : $!'`,
};

/** With quotes, backslashes and dollars as they are. */
async function sh(engine: OciEngine, sandbox: Sandbox, script: string): Promise<string> {
  await using init = await connectInit(sandbox.commands?.address as Sandbox["address"], engine.commands.key, signal);
  const { stdout, stderr } = await init.run({ argv: ["/bin/sh", "-c", script], env: { PATH: "/usr/bin:/bin" } });
  return `${stdout}${stderr}`.trim();
}

async function answers(engine: OciEngine, sandbox: Sandbox): Promise<string[]> {
  const found: string[] = [];
  for (const script of Object.values(NEEDS)) found.push(await sh(engine, sandbox, script));
  return found;
}
const ALL = Object.keys(NEEDS).map(() => "yes");

/** A file of process 1, also where no program could be started. */
async function read(engine: OciEngine, sandbox: Sandbox, path: string): Promise<string> {
  await using init = await connectInit(sandbox.commands?.address as Sandbox["address"], engine.commands.key, signal);
  return String(await init.files.read({ path }));
}

for (const program of ["crun", "runc", "runsc"] as const)
  describeNeeding(program, `with ${program}, a sandbox with the capabilities of Docker`, () => {
    const options = programs[program];

    it(`can ${Object.keys(NEEDS).join(", ")}; one without them cannot`, { timeout: 60_000 }, async () => {
      const engine = open(options);
      expect(await answers(engine, await create(engine, { capabilities }))).toEqual(ALL);
      for (const answer of await answers(engine, await create(engine))) expect(answer).toMatch(/the user is 1000|not permitted/);
    });

    it("gets a container that waits, and never one of a sandbox without them", { timeout: 60_000 }, async () => {
      const engine = open({ ...options, poolSize: 1 });
      for (let i = 0; i < 2; i++) {
        expect(await answers(engine, await create(engine, { capabilities }))).toEqual(ALL);
        expect(await sh(engine, await create(engine), NEEDS["change the root of a process"])).toMatch(/not permitted/);
        await engine.fillPools();
        expect(engine.waitingContainers).toBe(4);
      }
    });

    it("has them in copies and after a restart of the server", { timeout: 60_000 }, async () => {
      const first = open(options);
      const sandbox = await create(first, { capabilities });
      const snapshot = await sandbox.snapshots?.take("files", signal);
      expect(await answers(first, await create(first, { snapshot: snapshot?.id ?? "", capabilities }))).toEqual(ALL);
      await first.snapshots.remove(snapshot?.id ?? "");
      const { home } = opened.pop() as (typeof opened)[0];
      await first.close();
      const second = open({ ...options, home });
      const adopted = (await second.list()).find(({ id }) => id === sandbox.id) as Sandbox;
      expect(await answers(second, adopted)).toEqual(ALL);
    });
  });

for (const program of ["crun", "runc"] as const)
  describeNeeding(program, `with ${program}, a container that waits without files`, () => {
    it("has the files of an image with set-user-id programs, and no device nodes", { timeout: 60_000 }, async () => {
      using layout = temporaryTree();
      writeLayout(layout.path, [{ "data/greeting": "hello" }]);
      const engine = open({ ...programs[program], poolSize: 1 });
      await create(engine, { capabilities });
      await engine.fillPools();
      expect(engine.waitingContainers).toBe(2);
      const sandbox = await create(engine, { image: `oci:${layout.path}:image`, capabilities });
      expect(engine.waitingContainers).toBe(1);
      const [, , , , , mountOptions] = (await read(engine, sandbox, "/proc/self/mountinfo"))
        .split("\n")
        .map((line) => line.split(" "))
        .find(([, , , , target]) => target === "/") as string[];
      expect(mountOptions?.split(",")).toContain("nodev");
      expect(mountOptions?.split(",")).not.toContain("nosuid");
      expect(await read(engine, sandbox, "/proc/1/status")).toMatch(/^CapBnd:\t0*a80425fb$/m);
    });
  });

describeNeeding("runsc", "with runsc, a snapshot with memory", () => {
  it("keeps the capabilities of Docker", { timeout: 60_000 }, async () => {
    const engine = open({ runtime: "runsc" });
    const sandbox = await create(engine, { capabilities });
    const snapshot = await sandbox.snapshots?.take("memory", signal);
    expect(await answers(engine, await create(engine, { snapshot: snapshot?.id ?? "" }))).toEqual(ALL);
    await engine.snapshots.remove(snapshot?.id ?? "");
  });
});

describeNeeding("runc", "the capabilities of Docker are refused", () => {
  const refusal = async (options: Partial<OciEngineOptions>) => {
    const engine = open(options);
    const refused = await create(engine, { capabilities }).catch((error: unknown) => error);
    // Others start as before.
    await create(engine);
    return refused;
  };

  it("where root of a sandbox is root of this machine, unless the operator allows that", async () => {
    expect(await refusal({ users: "machine" })).toMatchObject({
      code: "instance.unsupported",
      message: expect.stringMatching(/sudo, sshd and chroot.* as root of this machine.*sandboxUsers.*--task-capabilities docker/),
    });
    const allowed = open({ users: "machine", capabilityLimit: "docker" });
    expect(await answers(allowed, await create(allowed, { capabilities }))).toEqual(ALL);
  });

  it("where a file system cannot translate owners, of the images or of a mounted folder", async () => {
    using disk = mountUntranslatedDisk();
    const mounts = [{ kind: "bind", source: disk.path, target: "/data", isReadOnly: true }] as const;
    const reason = { code: "instance.unsupported", message: expect.stringContaining("root of this machine") };
    expect(await refusal({ storeFolder: disk.path })).toMatchObject(reason);
    expect(await refusal({ base: async (layers) => ({ ...(await testBase(layers)), mounts }) })).toMatchObject(reason);
    await end();
  });

  it("if the operator allows only the minimal ones", async () => {
    expect(await refusal({ capabilityLimit: "minimal" })).toMatchObject({
      code: "instance.unsupported",
      message: expect.stringContaining("its setting taskCapabilities is 'minimal'"),
    });
  });
});
