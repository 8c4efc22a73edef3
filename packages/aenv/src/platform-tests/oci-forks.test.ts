import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { SandboxProcess } from "@aenv/sdk";
import { describeNeeding, temporaryTree, writeSmallImage } from "@aenv/testing";
import { afterAll, beforeAll, expect, it } from "vitest";
import { Environment } from "../index.ts";
import { aenv } from "../testing/cli.ts";
import { openOciImages } from "../testing/images.ts";
import { callTool, urlOf } from "./calls.ts";
import { askCounting, countingProgram } from "./fixtures/counting-program.ts";
import { type Platform, projects, publish, startPlatform } from "./platform.ts";

const snapshotsOf = ({ home }: Platform) => readdirSync(join(home, "oci/snapshots")).length;

const copiesOf = async ({ controlUrl }: Platform) => {
  const text = await (await fetch(`${controlUrl}/metrics`)).text();
  return Number(/^aenv_pool_copies_total (\d+)$/m.exec(text)?.[1]);
};

const node = async (platform: Platform, id: string, script: string) => {
  const body = { command: ["node", "-e", script], wait: true };
  return ((await platform.demand("POST", `/env-instance/${id}/exec`, body)) as { stdout: string }).stdout;
};

async function* linesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<string, void, undefined> {
  let rest = "";
  for await (const part of stream.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + part).split("\n");
    rest = lines.pop() ?? "";
    yield* lines;
  }
}

describeNeeding("runsc", "a platform whose sandboxes can be copied", () => {
  let platform: Platform;
  beforeAll(async () => {
    platform = await startPlatform({ flags: { engine: "oci", runtime: "runsc" } });
  });
  afterAll(() => platform?.close());

  it("forks an instance with its memory and files, also one whose state cannot be a value, and forks can be forked", async () => {
    const ref = await publish(platform, projects.tally);
    await using parent = new Environment(ref, { systemUrl: platform.controlUrl });
    const add = async (env: Environment, n: number) => (await env.callTool("add", { n })).content;
    const text = (value: number) => [{ type: "text", text: String(value) }];
    expect(await add(parent, 1)).toEqual(text(1));
    const { instanceId } = await parent.getEnvInfo();
    await node(platform, instanceId, "fs.writeFileSync('/kept', 'before')");

    const [left, right] = (await parent.fork(2, { fidelity: "memory" })) as [Environment, Environment];
    expect([left.forkFidelity, parent.forkFidelity]).toEqual(["memory", null]);
    expect([await add(left, 10), await add(right, 20), await add(parent, 1)]).toEqual([text(11), text(21), text(2)]);
    const [again] = (await left.fork(1, { fidelity: "memory" })) as [Environment];
    expect(await add(again, 100)).toEqual(text(111));
    expect(await node(platform, (await again.getEnvInfo()).instanceId, "console.log(fs.readFileSync('/kept', 'utf8'))")).toBe("before\n");
    for (const one of [left, right, again]) await one.release();
    expect(snapshotsOf(platform)).toBe(0);
  }, 120_000);

  it("forks a sandbox with a shell, a server and work in progress into eight that go on from there", async () => {
    await using parent = new Environment(await publish(platform, projects.tally), { systemUrl: platform.controlUrl });
    await parent.callTool("add", { n: 5 });
    const { sandbox } = parent;
    await using shell = await sandbox.spawn(["node", "-i"]);
    const printed = linesOf(shell.stdout);
    const ask = async ({ stdin }: SandboxProcess, lines: AsyncIterator<string>, code: string) => {
      const writer = stdin.getWriter();
      await writer.write(Buffer.from(`${code}\n`)).finally(() => writer.releaseLock());
      for (;;) {
        const { value, done } = await lines.next();
        if (done) throw new Error("the shell has ended");
        if (value.includes("answer ")) return value.slice(value.indexOf("answer ") + "answer ".length);
      }
    };
    const CALL = "console.log('answer', ++calls, fs.readFileSync('/kept', 'utf8'))";
    expect(await ask(shell, printed, `let calls = 10; fs.writeFileSync('/kept', 'before'); ${CALL}`)).toBe("11 before");
    const server = "let n = 0; http.createServer((_, response) => response.end(String(++n))).listen(9000)";
    await using serving = await sandbox.spawn(["node", "-e", `${server}; console.log("up")`]);
    await linesOf(serving.stdout).next();
    await using _working = await sandbox.spawn([
      "node",
      "-e",
      "let n = 0; setInterval(() => fs.writeFileSync('/progress', String(++n)), 20)",
    ]);
    const progress = async (env: Environment) => Number(await env.sandbox.files.readText("/progress").catch(() => "0"));
    await expect.poll(() => progress(parent), { timeout: 60_000 }).toBeGreaterThan(0);
    const served = async (env: Environment) => (await fetch(await env.sandbox.port(9000))).text();
    expect(await served(parent)).toBe("1");

    const forks = await parent.fork(8, { fidelity: "memory" });
    const seen = await Promise.all(
      forks.map(async (fork, at) => {
        await using own = await fork.sandbox.attach(shell.id);
        expect(await ask(own, linesOf(own.stdout), `fs.writeFileSync('/kept', 'fork ${at}'); ${CALL}`)).toBe(`12 fork ${at}`);
        expect(await served(fork)).toBe("2");
        expect((await fork.callTool("add", { n: at })).content).toEqual([{ type: "text", text: String(5 + at) }]);
        const reached = await progress(fork);
        await expect.poll(() => progress(fork), { timeout: 60_000 }).toBeGreaterThan(reached);
        const facts = "[os.hostname(), os.networkInterfaces().eth0[0].address, crypto.randomUUID()].join()";
        return (await fork.sandbox.exec(["node", "-p", facts])).stdout.trim().split(",");
      }),
    );
    for (const of of [0, 1, 2]) expect(new Set(seen.map((facts) => facts[of])).size).toBe(8);
    expect(await ask(shell, printed, CALL)).toBe("12 before");
    expect(await served(parent)).toBe("2");
    for (const fork of forks) await fork.release();
  }, 240_000);

  it("gives forks different random numbers, and so instances that are copies of a stored process", async () => {
    await using parent = new Environment(await publish(platform, projects.dice), { systemUrl: platform.controlUrl });
    const draw = async (env: Environment) => (await env.callTool("random", {})).json<string[]>();
    expect(new Set(await draw(parent)).size).toBe(9);
    const forks = await parent.fork(4, { fidelity: "memory" });
    const [again] = (await (forks[0] as Environment).fork(1, { fidelity: "memory" })) as [Environment];
    const all = [parent, ...forks, again];
    const drawn = await Promise.all(all.map(draw));
    for (const of of drawn[0]?.keys() ?? []) expect([of, new Set(drawn.map((one) => one[of])).size]).toEqual([of, all.length]);
    for (const one of [...forks, again]) await one.release();

    const ref = await publish(platform, projects.dice, { version: "1.0.1", deployConfig: { warmStart: true } });
    const before = await copiesOf(platform);
    const instances = [];
    for (let n = 0; n < 3; n++) instances.push(new Environment(ref, { systemUrl: platform.controlUrl }));
    const warm = [];
    for (const one of instances) warm.push(await draw(one));
    for (const of of warm[0]?.keys() ?? []) expect([of, new Set(warm.map((one) => one[of])).size]).toEqual([of, instances.length]);
    await expect.poll(() => copiesOf(platform), { timeout: 60_000 }).toBeGreaterThan(before);
    for (const one of instances) await one.release();
  }, 240_000);

  it("gives forks with memory the limits of their environment", async () => {
    const ref = await publish(platform, projects.tally, { version: "1.0.2", deployConfig: { memory: "700Mi", shmMb: 200 } });
    const { id } = await platform.create(ref);
    const forks = (await platform.demand("POST", `/env-instance/${id}/fork`, { count: 1, fidelity: "memory" })) as [{ id: string }];
    const folder = join(platform.home, "oci/sandboxes");
    const limits = readdirSync(folder).map((name) => JSON.parse(readFileSync(join(folder, name, "record.json"), "utf8")).limits.memoryMb);
    expect(limits.filter((memoryMb) => memoryMb === 700)).toHaveLength(2);
    const shmMb = "const { blocks, bsize } = fs.statfsSync('/dev/shm'); console.log((blocks * bsize) / 2 ** 20)";
    for (const one of [id, forks[0].id]) expect(await node(platform, one, shmMb)).toBe("200\n");
    for (const one of [id, forks[0].id]) await platform.demand("DELETE", `/env-instance/${one}`);
  }, 120_000);

  it("forks the state together with the files of the sandbox", async () => {
    const parent = await platform.create(await publish(platform, projects.probe));
    await callTool(urlOf(platform, parent.id), "count");
    await node(platform, parent.id, "fs.writeFileSync('/kept', 'before')");
    const [fork] = (await platform.demand("POST", `/env-instance/${parent.id}/fork`, { count: 1, fidelity: "files" })) as [{ id: string }];
    expect(fork).toMatchObject({ fork_fidelity: "files" });
    expect(await callTool(urlOf(platform, fork.id), "count")).toMatchObject({ text: "2" });
    expect(await node(platform, fork.id, "console.log(fs.readFileSync('/kept', 'utf8'))")).toBe("before\n");
  }, 120_000);

  it("forks and stores a program with a shell's job and a server on its own port, and starts it from the snapshots", async () => {
    using project = countingProgram();
    const ref = await publish(platform, project.path);
    const variables = { environment_variables: { GREETING: "hello" } };
    const count = async (id: string) => {
      const { progress: _, ...counted } = await askCounting(platform, id, "/count");
      return counted;
    };
    const progress = async (id: string) => (await askCounting(platform, id, "/look")).progress;
    const fork = async (of: string, how: object) =>
      ((await platform.demand("POST", `/env-instance/${of}/fork`, how)) as { id: string }[]).map((one) => one.id);
    const { id: parent } = await platform.create(ref, variables);
    expect(await count(parent)).toEqual({ count: 1, inFile: 0, greeting: "hello" });
    await expect.poll(() => progress(parent), { timeout: 60_000 }).toBeGreaterThan(0);

    const [left = "", right = "", third = ""] = await fork(parent, { count: 3, fidelity: "memory" });
    for (const id of [left, right, third]) {
      const reached = await progress(id);
      expect(await count(id)).toEqual({ count: 2, inFile: 1, greeting: "hello" });
      await expect.poll(() => progress(id), { timeout: 60_000 }).toBeGreaterThan(reached);
    }
    expect([(await count(left)).count, (await count(left)).count, (await count(parent)).count]).toEqual([3, 4, 2]);
    const [again = ""] = await fork(left, { count: 1, fidelity: "memory" });
    expect(await count(again)).toEqual({ count: 5, inFile: 4, greeting: "hello" });
    const [restarted = ""] = await fork(left, { count: 1, fidelity: "files" });
    expect(await count(restarted)).toEqual({ count: 1, inFile: 4, greeting: "hello" });
    for (const id of [right, third, again, restarted]) await platform.demand("DELETE", `/env-instance/${id}`);

    for (const [fidelity, more, counted] of [
      ["memory", {}, { count: 5, inFile: 4, greeting: "hello" }],
      ["files", variables, { count: 1, inFile: 4, greeting: "hello" }],
    ] as const) {
      await platform.demand("POST", `/env-instance/${left}/snapshot`, { name: `its-${fidelity}`, fidelity });
      const { id } = await platform.create("", { snapshot: `its-${fidelity}`, ...more });
      expect(await count(id)).toEqual(counted);
      await platform.demand("DELETE", `/env-instance/${id}`);
      await platform.demand("DELETE", `/snapshots/its-${fidelity}`);
    }
    const unsaid = (await platform.demand("POST", `/env-instance/${left}/fork`, { count: 1 })) as [{ id: string }];
    expect(unsaid).toEqual([expect.objectContaining({ fork_fidelity: "memory" })]);
    expect(await count(unsaid[0].id)).toEqual({ count: 5, inFile: 4, greeting: "hello" });
    await platform.demand("DELETE", `/env-instance/${unsaid[0].id}`);
    const refused = await platform.ask("POST", `/env-instance/${left}/fork`, { count: 1, fidelity: "state" });
    expect(refused).toMatchObject({ error: { code: "instance.unsupported" }, message: expect.stringContaining("files or memory") });
    for (const id of [left, parent]) await platform.demand("DELETE", `/env-instance/${id}`);
  }, 240_000);

  it("forks a plain image with its running shell, if the request does not say with what", async () => {
    using tree = temporaryTree();
    await using store = await openOciImages({ home: platform.home });
    const archive = await writeSmallImage(tree.path, {});
    await store.load("plain:1", `docker-archive:${archive}`, AbortSignal.timeout(60_000));
    await platform.demand("POST", "/env", { name: "plain", version: "1.0.0", artifacts: [{ type: "image", content: "plain:1" }] });
    await using parent = new Environment("plain@1.0.0", { systemUrl: platform.controlUrl, dataPlane: false });
    await using _shell = await parent.sandbox.spawn("while sleep 0.05; do n=$((n + 1)); echo $n > /tmp/n; done");
    const reached = async (env: Environment) => Number((await env.sandbox.exec("cat /tmp/n")).stdout);
    await expect.poll(() => reached(parent).catch(() => 0), { timeout: 60_000 }).toBeGreaterThan(0);
    const forks = await parent.fork(2);
    for (const fork of forks) {
      expect(fork.forkFidelity).toBe("memory");
      const before = await reached(fork);
      await expect.poll(() => reached(fork), { timeout: 60_000 }).toBeGreaterThan(before);
      await fork.release();
    }
  }, 240_000);

  it("starts instances as copies of a stored process, if the environment asks for it", async () => {
    const ref = await publish(platform, projects.probe, { version: "1.0.1", deployConfig: { warmStart: true } });
    const stored = snapshotsOf(platform);
    const first = await platform.create(ref);
    expect(snapshotsOf(platform)).toBe(stored + 1);
    const before = await copiesOf(platform);
    const second = await platform.create(ref);
    for (const { id } of [first, second]) expect(await callTool(urlOf(platform, id), "count")).toMatchObject({ text: "1" });
    // The second one is a copy or, if a process was ready for it, that process is replaced by a copy.
    await expect.poll(() => copiesOf(platform), { timeout: 60_000 }).toBeGreaterThan(before);
    expect(snapshotsOf(platform)).toBe(stored + 1);
  }, 120_000);

  it("starts instances of a program with the same variables as copies of one that answered, if the environment asks for it", async () => {
    using project = countingProgram();
    const ref = await publish(platform, project.path, { version: "1.0.1", deployConfig: { warmStart: true } });
    const create = (greeting: string) => platform.create(ref, { environment_variables: { GREETING: greeting } });
    const [stored, copied] = [snapshotsOf(platform), await copiesOf(platform)];
    const first = await create("hello");
    const [second, third] = await Promise.all([create("hello"), create("hello")]);
    const other = await create("welcome");
    expect(await copiesOf(platform)).toBe(copied + 2);
    expect(snapshotsOf(platform)).toBe(stored + 2);
    for (const { id } of [first, second, third])
      expect(await askCounting(platform, id, "/count")).toMatchObject({ count: 1, inFile: 0, greeting: "hello" });
    expect(await askCounting(platform, other.id, "/count")).toMatchObject({ count: 1, greeting: "welcome" });
    for (const { id } of [first, second, third, other]) await platform.demand("DELETE", `/env-instance/${id}`);
  }, 120_000);
});

describeNeeding("runc", "a platform whose sandboxes run with runc", () => {
  it("forks a program with its files, if the request does not say with what, and an environment with its state", async () => {
    await using platform = await startPlatform({ flags: { engine: "oci", runtime: "runc" } });
    using project = countingProgram();
    const { id } = await platform.create(await publish(platform, project.path), { environment_variables: { GREETING: "hello" } });
    await askCounting(platform, id, "/count");
    const [fork] = (await platform.demand("POST", `/env-instance/${id}/fork`, { count: 1 })) as [{ id: string }];
    expect(fork).toMatchObject({ fork_fidelity: "files" });
    expect(await askCounting(platform, fork.id, "/count")).toMatchObject({ count: 1, inFile: 1, greeting: "hello" });
    const { id: probe } = await platform.create(await publish(platform, projects.probe));
    const env = { AENV_SYSTEM_URL: platform.controlUrl };
    const { stdout } = await aenv(["instance", "fork", probe], { env });
    expect(stdout).toContain(`1 fork of ${probe}, with its state`);
  }, 240_000);
});
