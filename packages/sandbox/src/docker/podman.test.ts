import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describeNeeding, type PodmanService, startPodman, temporaryTree } from "@aenv/testing";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Behaviour, describeEngine } from "../conformance.ts";
import type { Sandbox } from "../engine/engine.ts";
import { TEST_PROGRAM, testRoot } from "../fixtures/test-root.ts";
import { connectInit } from "../init/connection.ts";
import { DockerApi } from "./api.ts";
import { HOME_LABEL } from "./container.ts";
import { DockerEngine } from "./engine.ts";
import type { DockerSandbox } from "./sandbox.ts";

const { signal } = new AbortController();

describeNeeding("podman", "the docker engine with Podman", () => {
  let podman: PodmanService;
  let api: DockerApi;

  beforeAll(async () => {
    podman = await startPodman();
    api = new DockerApi(podman.socket);
  }, 120_000);

  afterAll(async () => {
    await api?.close();
    await podman?.[Symbol.asyncDispose]();
  }, 60_000);

  const open = (home: string) => new DockerEngine({ home, socket: podman.socket, base: async () => testRoot() });

  function command(behaviour: Behaviour): readonly string[] {
    return behaviour === "missing" ? ["/nowhere/no-such-program"] : ["/usr/bin/node", TEST_PROGRAM, behaviour];
  }

  /** Processes of a container as the machine numbers them. */
  async function processes(sandbox: Sandbox): Promise<number[]> {
    const { Processes: rows } = await api.call("GET", `${(sandbox as DockerSandbox).path}/top`, { query: { ps_args: "hpid" } });
    return (rows as string[][]).map(([pid]) => Number(pid));
  }

  async function leftovers(home: string): Promise<string[]> {
    const label = `${HOME_LABEL}=${readFileSync(join(home, "docker/home-id"), "utf8")}`;
    const containers = await api.list("/containers/json", { all: "true", filters: JSON.stringify({ label: [label] }) });
    const networks = await api.list("/networks", { filters: JSON.stringify({ label: [label] }) });
    return [...containers, ...networks].map(({ Id: id }) => String(id)).concat(readdirSync(join(home, "docker/sandboxes")));
  }

  describeEngine("docker with Podman", { open, command, processes, leftovers, startTimeoutMs: 60_000 });

  it("has no network, few capabilities and a filter, is frozen and thawed, and reports that its memory is full", async () => {
    using home = temporaryTree();
    const engine = open(home.path);
    const spec = { id: "one", command: command("serve"), variables: {}, labels: {}, startTimeoutMs: 60_000 };
    const sandbox = (await engine.create({ ...spec, resources: { memoryMb: 128, cpus: 1, processes: 200 } }, signal)) as DockerSandbox;
    await using init = await connectInit(sandbox.commands?.address, engine.commands.key, signal);
    const run = async (script: string) => (await init.run({ argv: ["/bin/sh", "-c", script] })).stdout.toString().trim();
    expect(await run("grep -c : /proc/net/dev")).toBe("1");
    expect(await run("cat /etc/hosts")).toMatch(/policy none.*deployConfig\.egress/s);
    const status = await run("grep -E '^(CapBnd|NoNewPrivs|Seccomp):' /proc/self/status");
    expect(status.replaceAll("\t", " ")).toBe("CapBnd: 00000000000004fb\nNoNewPrivs: 1\nSeccomp: 2");
    await sandbox.freezing.freeze();
    await sandbox.freezing.freeze();
    await sandbox.freezing.thaw();
    await sandbox.freezing.thaw();
    expect(await sandbox.freezing.cpuMs()).toBeGreaterThan(0);
    await run("node -e 'const all = []; for (;;) all.push(Buffer.alloc(1e7, 1))'").catch(() => undefined);
    expect(await sandbox.limitUse().catch(() => null)).toSatisfy(
      (use: { outOfMemoryKills: number } | null) => use === null || use.outOfMemoryKills > 0,
    );
    await sandbox.destroy();
    await engine.close();
    expect(await leftovers(home.path)).toEqual([]);
  }, 120_000);

  it("loses and gets its network while it runs, if it was created with one", async () => {
    using home = temporaryTree();
    const engine = open(home.path);
    const spec = { command: [], variables: {}, labels: {}, startTimeoutMs: 60_000, listening: { kind: "none" } as const };
    const sandbox = (await engine.create({ ...spec, id: "open", egress: "open" }, signal)) as DockerSandbox;
    await using init = await connectInit(sandbox.commands?.address, engine.commands.key, signal);
    const interfaces = async () => (await init.run({ argv: ["grep", "-c", ":", "/proc/net/dev"] })).stdout.toString().trim();
    expect(await interfaces()).toBe("2");
    await sandbox.egress?.set("none");
    expect(await interfaces()).toBe("1");
    await sandbox.egress?.set("open");
    expect(await interfaces()).toBe("2");
    const closed = (await engine.create({ ...spec, id: "closed" }, signal)) as DockerSandbox;
    await expect(closed.egress?.set("open")).rejects.toMatchObject({ code: "sandbox.unsupported" });
    expect(engine.egress.problem?.(["none", "open"], undefined)).toContain("Podman gives no network");
    expect(engine.egress.problem?.(["open", "none", "open"], undefined)).toBeNull();
    // What its home has made of the base has the label by which a later version removes it.
    const images = await api.list("/images/json", { filters: JSON.stringify({ label: [`${HOME_LABEL}`] }) });
    expect(images.flatMap(({ RepoTags: names }) => names as string[])).toContainEqual(expect.stringContaining("aenv-base:"));
    await Promise.all([sandbox.destroy(), closed.destroy()]);
    await engine.close();
    expect(await leftovers(home.path)).toEqual([]);
  }, 120_000);
});
