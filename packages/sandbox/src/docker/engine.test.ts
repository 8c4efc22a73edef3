import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { get } from "node:http";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { EgressPolicy } from "@aenv/contract";
import { type DockerDaemon, describeNeeding, limitMemoryAbove, missing, startDocker, type Tree, temporaryTree } from "@aenv/testing";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { type Behaviour, describeEngine } from "../conformance.ts";
import type { Sandbox, SandboxSpec } from "../engine/engine.ts";
import { TEST_PROGRAM, testRoot } from "../fixtures/test-root.ts";
import { writeLayout } from "../images/fixtures/layout.ts";
import { startRegistry } from "../images/fixtures/registry.ts";
import { connectInit } from "../init/connection.ts";
import { metricOf } from "../network/home.ts";
import { prefixOf } from "../network/subnet.ts";
import { DockerApi } from "./api.ts";
import { HOME_LABEL, SANDBOX_LABEL } from "./container.ts";
import { DockerEngine } from "./engine.ts";
import type { DockerEngineOptions } from "./options.ts";
import type { DockerSandbox } from "./sandbox.ts";

const { signal } = new AbortController();
const creator = fileURLToPath(new URL("../fixtures/create-docker-sandboxes.ts", import.meta.url));
/** Four, or from a hundred on as many as the variable says. */
const SEEDS = Number(process.env.AENV_CRASH_SEEDS ?? 4);
const crashes = Array.from({ length: SEEDS >= 100 ? SEEDS : 4 }, (_, index) => index + 1);

describeNeeding("docker", "the docker engine", () => {
  let daemon: DockerDaemon;
  let api: DockerApi;

  beforeAll(async () => {
    daemon = await startDocker();
    api = new DockerApi(daemon.socket);
  }, 120_000);

  afterAll(async () => {
    await api?.close();
    await daemon?.[Symbol.asyncDispose]();
  }, 60_000);

  function open(home: string, options: Partial<DockerEngineOptions> = {}): DockerEngine {
    return new DockerEngine({ home, socket: daemon.socket, base: async () => testRoot(), ...options });
  }

  function command(behaviour: Behaviour): readonly string[] {
    return behaviour === "missing" ? ["/nowhere/no-such-program"] : ["/usr/bin/node", TEST_PROGRAM, behaviour];
  }

  /** Processes of a container as the machine numbers them. */
  async function processes(sandbox: Sandbox): Promise<number[]> {
    const { Processes: rows } = await api.call("GET", `${(sandbox as DockerSandbox).path}/top`, { query: { ps_args: "-o pid" } });
    return (rows as string[][]).map(([pid]) => Number(pid));
  }

  async function leftovers(home: string): Promise<string[]> {
    const homeId = readFileSync(join(home, "docker/home-id"), "utf8");
    const label = `${HOME_LABEL}=${homeId}`;
    const containers = await api.list("/containers/json", { all: "true", filters: JSON.stringify({ label: [label] }) });
    const networks = await api.list("/networks", { filters: JSON.stringify({ label: [label] }) });
    const { Volumes: volumes } = await api.call("GET", "/volumes", { query: { filters: JSON.stringify({ label: [label] }) } });
    const links = execFileSync("ip", ["-o", "link"], { encoding: "utf8" }).split("\n");
    return [...containers, ...networks, ...((volumes ?? []) as { Name: string }[])]
      .map((one) => String("Id" in one ? one.Id : one.Name))
      .concat(readdirSync(join(home, "docker/sandboxes")))
      .concat(links.filter((line) => line.includes(prefixOf(homeId))));
  }

  /** The same when no engine of the home is open any more: then there are no rules and no claimed subnet either. */
  async function allLeftovers(home: string): Promise<string[]> {
    const prefix = prefixOf(readFileSync(join(home, "docker/home-id"), "utf8"));
    const tables = execFileSync("nft", ["list", "tables"], { encoding: "utf8" }).split("\n");
    const routes = execFileSync("ip", ["-4", "route", "show", "type", "blackhole"], { encoding: "utf8" }).split("\n");
    const metric = new RegExp(`metric ${metricOf(readFileSync(join(home, "docker/home-id"), "utf8"))}\\b`);
    return [
      ...(await leftovers(home)),
      ...tables.filter((line) => line.includes(prefix)),
      ...routes.filter((line) => metric.test(line)),
      ...(existsSync(join(home, "docker/networks")) ? readdirSync(join(home, "docker/networks")) : []).filter((name) =>
        name.startsWith(prefix),
      ),
    ];
  }

  describeEngine("docker", { open, command, processes, leftovers, startTimeoutMs: 60_000 });

  describe("a sandbox", { timeout: 60_000 }, () => {
    const trees: Tree[] = [];
    const engines: DockerEngine[] = [];

    afterEach(async () => {
      for (const engine of engines.splice(0).reverse()) {
        for (const sandbox of await engine.list()) await sandbox.destroy();
        await engine.close();
      }
      for (const tree of trees.splice(0)) tree[Symbol.dispose]();
    });

    function newEngine(options: Partial<DockerEngineOptions> = {}, home = newHome()): DockerEngine {
      const engine = open(home, options);
      engines.push(engine);
      return engine;
    }

    function newHome(): string {
      const tree = temporaryTree();
      trees.push(tree);
      return tree.path;
    }

    async function make(engine: DockerEngine, more: Partial<SandboxSpec> = {}): Promise<DockerSandbox> {
      const spec = { id: "one", command: command("serve"), variables: {}, labels: {}, startTimeoutMs: 60_000, ...more };
      return (await engine.create(spec, signal)) as DockerSandbox;
    }

    /** A sandbox that is only used for commands. */
    const plain = { command: [], listening: { kind: "none" } } as const;

    async function run(engine: DockerEngine, sandbox: Sandbox, script: string, user?: string): Promise<string> {
      await using init = await connectInit(sandbox.commands?.address as never, engine.commands.key, signal);
      const { stdout, stderr } = await init.run({ argv: ["/bin/sh", "-c", script], ...(user !== undefined && { user }) });
      return `${stdout}${stderr}`.trim();
    }

    it("has no network, few capabilities and a filter, and no folder of the machine to write to", async () => {
      const engine = newEngine();
      const sandbox = await make(engine, plain);
      const can = async (script: string) =>
        !(await run(engine, sandbox, `(${script}) >/dev/null 2>&1 || echo refused`)).endsWith("refused");
      expect(await can("touch /tmp/file")).toBe(true);
      for (const script of [
        "mount -t tmpfs x /tmp",
        "unshare -U true",
        "mknod /tmp/disk b 254 0",
        "touch /.aenv/run/file",
        "touch /.aenv/init",
      ])
        expect(await can(script), script).toBe(false);
      expect(await run(engine, sandbox, "grep -c : /proc/net/dev")).toBe("1");
      expect(await run(engine, sandbox, "cat /etc/hosts")).toMatch(/localhost.*policy none.*deployConfig\.egress/s);
      const status = await run(engine, sandbox, "grep -E '^(CapBnd|NoNewPrivs|Seccomp):' /proc/self/status");
      expect(status.replaceAll("\t", " ")).toBe("CapBnd: 00000000000004fb\nNoNewPrivs: 1\nSeccomp: 2");
    });

    it("has the capabilities of Docker and set-user-id programs if it asks for them and the operator allows it", async () => {
      const asked = { ...plain, capabilities: "docker" } as const;
      await expect(make(newEngine(), asked)).rejects.toMatchObject({
        code: "instance.unsupported",
        message: expect.stringMatching(/userns-remap.*--task-capabilities docker/),
      });
      const engine = newEngine({ capabilityLimit: "docker" });
      const sandbox = await make(engine, asked);
      const status = await run(engine, sandbox, "grep -E '^(CapBnd|NoNewPrivs|Seccomp):' /proc/self/status");
      expect(status.replaceAll("\t", " ")).toBe("CapBnd: 00000000a80425fb\nNoNewPrivs: 0\nSeccomp: 2");
      const asUser = `perl -e '$( = $) = 1000; $< = $> = 1000; exec "/tmp/suid", "-e", "print \\$>"'`;
      expect(await run(engine, sandbox, `cp /usr/bin/perl /tmp/suid; chmod 4755 /tmp/suid; ${asUser}`)).toBe("0");
      expect(await run(engine, sandbox, `perl -e 'print chroot("/tmp")'`)).toBe("1");
    });

    it("keeps variables, which may be secrets, out of the daemon", async () => {
      const sandbox = await make(newEngine(), { variables: { TOKEN: "s3cret-value" } });
      expect(await textAt(sandbox, "/environment")).toContain("s3cret-value");
      expect(JSON.stringify(await api.call("GET", `${sandbox.path}/json`))).not.toContain("s3cret-value");
    });

    it("runs commands, takes folders, and stops while it is frozen", async () => {
      using folder = temporaryTree({ "main.js": "content" });
      const engine = newEngine();
      const sandbox = await make(engine);
      expect(engine.can).toMatchObject({ freezes: true, images: true, isolates: true });
      expect(await run(engine, sandbox, `cat ${await sandbox.addFolder(folder.path, signal)}/main.js`, "app")).toBe("content");
      const status = async () => ((await api.call("GET", `${sandbox.path}/json`)).State as { Status: string }).Status;
      await sandbox.freezing.freeze();
      await sandbox.freezing.freeze();
      expect(await status()).toBe("paused");
      expect(await engine.list()).toEqual([sandbox]);
      await sandbox.freezing.thaw();
      await sandbox.freezing.thaw();
      expect(await textAt(sandbox, "/health")).toContain("true");
      expect(await sandbox.freezing.cpuMs()).toBeGreaterThan(0);
      await sandbox.freezing.freeze();
      await sandbox.destroy();
    });

    it("ends with the reason when it uses more memory than its limit", async () => {
      const sandbox = await make(newEngine(), { resources: { memoryMb: 128, cpus: 1, processes: 200 } });
      await textAt(sandbox, "/allocate?mb=300", "POST").catch(() => undefined);
      expect((await sandbox.exited).reason).toBe("the program ran out of memory (its limit is 128 MB)");
    });

    it("has a /dev/shm of the size that it asks for", async () => {
      const engine = newEngine();
      const sizeOf = async (sandbox: Sandbox) => {
        await using init = await connectInit(sandbox.commands?.address as never, engine.commands.key, signal);
        const script = "const { blocks, bsize } = fs.statfsSync('/dev/shm'); console.log((blocks * bsize) / 2 ** 20)";
        return Number((await init.run({ argv: ["/bin/sh", "-c", `node -e "${script}"`] })).stdout);
      };
      expect(await sizeOf(await make(engine, plain))).toBe(64);
      expect(await sizeOf(await make(engine, { ...plain, id: "two", resources: { shmMb: 200 } }))).toBe(200);
    });

    it("tells a process that its own memory limit has ended from one that was ended from outside", async () => {
      const engine = newEngine();
      const ending = async (sandbox: Sandbox) => {
        await using init = await connectInit(sandbox.commands?.address as never, engine.commands.key, signal);
        const { stdout, interruption } = await init.run({
          argv: ["/bin/sh", "-c", "node -e 'Buffer.alloc(400 * 2 ** 20, 1)'; echo $?"],
        });
        return [stdout.toString(), interruption];
      };
      expect(await ending(await make(engine, { ...plain, resources: { memoryMb: 128 } }))).toEqual(["137\n", null]);
      const sandbox = await make(engine, { ...plain, id: "two", resources: { memoryMb: 1_024 } });
      using _ = limitMemoryAbove((await processes(sandbox))[0] as number, 200 * 2 ** 20);
      expect(await ending(sandbox)).toEqual(["137\n", expect.stringContaining("for want of memory")]);
    });

    it("is refused with the next step if a limit or an image cannot be used", async () => {
      const home = newHome();
      const engine = newEngine({}, home);
      await expect(make(engine, { resources: { diskMb: 100 } })).rejects.toMatchObject({
        code: "sandbox.unsupported",
        message: expect.stringMatching(/disk of sandbox 'one' cannot be limited.*remove the limit/),
      });
      await expect(make(engine, { image: "oci:/some/layout" })).rejects.toMatchObject({ message: expect.stringContaining("skopeo copy") });
      expect(await leftovers(home)).toEqual([]);
    });

    it("has a network of its home with open egress, which is removed with it", async () => {
      const home = newHome();
      const engine = newEngine({}, home);
      const sandbox = await make(engine, { egress: "open" });
      expect(await textAt(sandbox, "/health")).toContain("true");
      expect(await run(engine, sandbox, "grep -c : /proc/net/dev")).toBe("2");
      await sandbox.destroy();
      expect(await leftovers(home)).toEqual([]);
    });

    it("with outgoing connections leaves no network and no firewall table, also if several end at once", async () => {
      const home = newHome();
      const engine = newEngine({}, home);
      const policies: Record<string, EgressPolicy> = { one: "open", two: { allow: ["192.0.2.1:443"] }, three: "open" };
      const open = Object.entries(policies).map(([id, egress]) => make(engine, { ...plain, id, egress }));
      await Promise.all((await Promise.all(open)).map((sandbox) => sandbox.destroy()));
      expect(await leftovers(home)).toEqual([]);
      await engine.close();
      expect(await allLeftovers(home)).toEqual([]);
    });

    it("gets a network while it runs, and keeps it without connections", async () => {
      const home = newHome();
      const engine = newEngine({}, home);
      const sandbox = await make(engine, plain);
      const interfaces = () => run(engine, sandbox, "grep -c : /proc/net/dev");
      expect(await interfaces()).toBe("1");
      for (const _ of [1, 2]) {
        await sandbox.egress?.set("open");
        await sandbox.egress?.set("open");
        expect(await interfaces()).toBe("2");
        await sandbox.egress?.set({ allow: ["192.0.2.1:443"] });
        await sandbox.egress?.set("none");
        expect(await interfaces()).toBe("2");
      }
      await sandbox.destroy();
      expect(await leftovers(home)).toEqual([]);
    });

    it("finds others of its private network by name, reaches nothing else, and takes the network with it", async () => {
      const home = newHome();
      const engine = newEngine({}, home);
      const networkOf = (id: string, ...aliases: string[]) => ({ networks: [{ id, aliases }] });
      const both = { networks: [...networkOf("a").networks, ...networkOf("b", "both").networks] };
      const serve = ["-e", "require('http').createServer((q, s) => s.end('hello ' + process.env.NAME)).listen(8000)"];
      const service = await make(engine, {
        ...plain,
        ...networkOf("a", "db", "store"),
        id: "service",
        variables: { NAME: "ada" },
        program: { entrypoint: ["/usr/bin/node"], command: serve },
      });
      const [client, open, stranger] = [
        await make(engine, { ...plain, ...networkOf("a", "main"), id: "client" }),
        await make(engine, { ...plain, ...both, id: "open", egress: "open" }),
        await make(engine, { ...plain, ...networkOf("b"), id: "stranger", egress: "open" }),
      ];
      // Where the machine's name server does not answer, looking up a name that nobody knows takes half a minute.
      const request = (host: string) => `fetch('http://${host}:8000', { signal: AbortSignal.timeout(5000) }).then((r) => r.text())`;
      const ask = (from: Sandbox, host: string) =>
        run(engine, from, `node -e "${request(host)}.catch(() => 'refused').then((text) => (console.log(text), process.exit()))"`);
      await expect.poll(() => ask(client, "db"), { timeout: 30_000 }).toBe("hello ada");
      expect(await Promise.all([ask(client, "store"), ask(open, "db"), ask(stranger, "db")])).toEqual([
        "hello ada",
        "hello ada",
        "refused",
      ]);
      const knows = (from: Sandbox, host: string) =>
        run(engine, from, `node -e "require('dns').lookup('${host}', (error) => console.log(error === null))"`);
      expect([await knows(stranger, "both"), await knows(client, "both")]).toEqual(["true", "false"]);
      // Programs of this machine that listen on all addresses are not reached either: it has none in the network.
      const { Id: id, Internal: isInternal } = await api.call("GET", `/networks/aenv-${client.path.split("-")[1]}-net-a`);
      const addresses = networkInterfaces()[`br-${String(id).slice(0, 12)}`] ?? [];
      expect([isInternal, addresses.filter(({ family }) => family === "IPv4")]).toEqual([true, []]);
      await stranger.egress?.set("none");
      await stranger.egress?.set("open");
      await service.destroy();
      expect(await ask(client, "db")).toBe("refused");
      // All at once: the last ones remove the networks.
      await Promise.all([client, open, stranger].map((one) => one.destroy()));
      expect(await leftovers(home)).toEqual([]);
    });

    it("shares a volume with others of the same id, also after a crash, and takes it with it", async () => {
      const home = newHome();
      const engine = newEngine({}, home);
      const volumeOf = (id: string, path: string, isReadOnly = false) => ({ volumes: [{ id, path, isReadOnly }] });
      const [writer, reader, stranger] = [
        await make(engine, { ...plain, ...volumeOf("a", "/srv/data"), id: "writer" }),
        await make(engine, { ...plain, ...volumeOf("a", "/mnt/deep/data", true), id: "reader" }),
        await make(engine, { ...plain, ...volumeOf("b", "/srv/data"), id: "stranger" }),
      ];
      await run(engine, writer, "echo shared > /srv/data/file");
      expect(await run(engine, reader, "cat /mnt/deep/data/file; echo x 2>/dev/null > /mnt/deep/data/file || echo read-only")).toBe(
        "shared\nread-only",
      );
      expect(await run(engine, stranger, "ls /srv/data")).toBe("");
      await writer.destroy();
      expect(await run(engine, reader, "cat /mnt/deep/data/file")).toBe("shared");
      await engine.close();
      // The next server of this home finds them.
      await Promise.all((await newEngine({}, home).list()).map((one) => one.destroy()));
      expect(await leftovers(home)).toEqual([]);
    });

    it("runs the program of an image as its user, in its folder, and waits for its port and path", async () => {
      const changes = ['ENV GREETING="hello"', "USER app", "WORKDIR /tmp", `ENTRYPOINT ["/usr/bin/node", "-e"]`, `CMD ["${server}"]`];
      const query = new URLSearchParams({ fromSrc: "-", repo: "own-program", tag: "1" });
      for (const change of changes) query.append("changes", change);
      await api.call("POST", `/images/create?${query}`, { archive: testRoot().archive() });
      const sandbox = await make(newEngine(), {
        image: "own-program:1",
        command: [],
        listening: { kind: "port", port: 3000, healthPath: "/ready" },
        variables: { NAME: "ada" },
      });
      expect(JSON.parse(await textAt(sandbox, "/"))).toEqual({ uid: 1000, folder: "/tmp", greeting: "hello ada" });
      expect(sandbox.commands.defaults).toMatchObject({ cwd: "/tmp", env: { GREETING: "hello" } });
      expect(sandbox.commands.defaults?.env).not.toHaveProperty("NAME");
    });

    describe("of an image with a working directory that is in no layer", () => {
      const importImage = async (workingDirectory: string) => {
        const query = new URLSearchParams({ fromSrc: "-", repo: "no-folder", tag: "1", changes: `WORKDIR ${workingDirectory}` });
        await api.call("POST", `/images/create?${query}`, { archive: testRoot().archive() });
        return { ...plain, image: "no-folder:1" };
      };

      it("has it", async () => {
        const engine = newEngine();
        const sandbox = await make(engine, await importImage("/data/work/here"));
        expect(sandbox.commands.defaults?.cwd).toBe("/data/work/here");
        expect(await run(engine, sandbox, "cd /data/work/here && pwd")).toBe("/data/work/here");
        const own = { entrypoint: ["/usr/bin/node"], command: ["-e", "setInterval(() => {}, 1e6)"], cwd: "/srv/own" };
        const service = await make(engine, { ...(await importImage("/")), id: "service", program: own });
        expect(await run(engine, service, "cd /srv/own && pwd")).toBe("/srv/own");
      });

      it.each(["/etc/passwd", "/etc/passwd/here"])("does not start if a file is in its place: %s", async (path) => {
        await expect(make(newEngine(), await importImage(path))).rejects.toMatchObject({
          code: "sandbox.start_failed",
          message: expect.stringContaining(`the working directory ${path} cannot be created`),
        });
      });
    });

    it("without an image has one that its home has made, which the next server removes if it has another base", async () => {
      const home = newHome();
      const filters = JSON.stringify({ reference: ["aenv-base"] });
      const tags = async () => (await api.list("/images/json", { filters })).flatMap(({ RepoTags: names }) => names as string[]);
      const baseOf = (digit: string) => async () => ({ digest: `sha256:${digit.repeat(64)}`, archive: () => testRoot().archive() });
      const made = (digit: string) => `aenv-base:${digit.repeat(16)}`;
      const other = await make(newEngine({ base: baseOf("c") }), plain);
      const first = newEngine({ base: baseOf("a") }, home);
      const used = await make(first, plain);
      await first.close();
      const second = newEngine({ base: baseOf("b") }, home);
      await make(second, { ...plain, id: "two" });
      // A container has it.
      expect(await tags()).toEqual(expect.arrayContaining(["a", "b", "c"].map(made)));
      for (const sandbox of await second.list()) if (sandbox.id === used.id) await sandbox.destroy();
      await second.close();
      const third = newEngine({ base: baseOf("b") }, home);
      await make(third, { ...plain, id: "three" });
      expect(await tags()).toEqual(expect.arrayContaining(["b", "c"].map(made)));
      expect(await tags()).not.toContain(made("a"));
      // An image that was removed meanwhile is made again.
      await other.destroy();
      await api.call("DELETE", `/images/${made("c")}`);
      expect(await run(engines[0] as DockerEngine, await make(engines[0] as DockerEngine, { ...plain, id: "again" }), "echo here")).toBe(
        "here",
      );
    });

    it("runs an empty image of a registry, which is pulled with credentials and reported", async () => {
      const home = newHome();
      writeLayout(join(home, "layout"), [{ "only-file": "content" }]);
      await using registry = await startRegistry(join(home, "layout"), "me:secret");
      const authFile = join(home, "auth.json");
      writeFileSync(authFile, JSON.stringify({ auths: { [registry.host]: { auth: Buffer.from("me:secret").toString("base64") } } }));
      const image = `${registry.host}/ns/name:1`;
      const lines: string[] = [];
      const listed = { imageRegistries: [registry.host], log: (line: string) => lines.push(line) };
      const message = `the image '${image}' could not be pulled: its registry does not have it, wants other credentials, or did not answer`;
      await expect(make(newEngine(listed), { ...plain, image })).rejects.toMatchObject({
        code: "sandbox.start_failed",
        message: expect.stringContaining(message),
      });
      const engine = newEngine({ authFile, ...listed });
      const sandbox = await make(engine, { ...plain, image });
      await using init = await connectInit(sandbox.commands?.address, engine.commands.key, signal);
      expect((await init.files.read({ path: "/only-file" })).toString()).toBe("content");
      expect(lines.join("\n")).toMatch(/pulling 127\.0\.0\.1.*Pull complete.*/s);
      expect(lines.join("\n")).not.toContain("secret");
    });

    it("is not asked of a registry on this machine that is not listed, and the daemon's words about one that is stay in the log", async () => {
      const home = newHome();
      writeLayout(join(home, "layout"), [{ "only-file": "content" }]);
      await using registry = await startRegistry(join(home, "layout"), "me:secret");
      const refused = { code: "sandbox.image_unavailable", message: expect.stringContaining("the setting imageRegistries") };
      for (const host of [registry.host, registry.host.replace("127.0.0.1", "localhost"), "169.254.169.254", "10.0.0.1:5000"])
        await expect(make(newEngine(), { ...plain, image: `${host}/ns/name:1` })).rejects.toMatchObject(refused);
      const closed = "127.0.0.1:1";
      const texts: string[] = [];
      const lines: string[] = [];
      for (const host of [registry.host, closed]) {
        const engine = newEngine({ imageRegistries: [host], log: (line) => lines.push(line) });
        const error: Error = await make(engine, { ...plain, image: `${host}/ns/name:1` }).then(
          () => new Error("it was pulled"),
          (one) => one,
        );
        texts.push(error.message.replaceAll(host, "HOST"));
      }
      expect(texts[0]).toBe(texts[1]);
      expect(lines.join("\n")).toMatch(/127\.0\.0\.1:1\/ns\/name:1 could not be pulled: .*refused/);
    });

    it("that a crashed server did not finish is removed, and containers of others are not touched", async () => {
      const home = newHome();
      const first = newEngine({}, home);
      const [unfinished] = [await make(first, { id: "unfinished" }), await make(first, { id: "lost" }), await make(first, { id: "kept" })];
      const other = await make(newEngine(), { id: "other" });
      await first.close();
      const file = join(home, "docker/sandboxes/unfinished/record.json");
      writeFileSync(file, JSON.stringify({ ...unfinished?.record, isReady: false, maker: { pid: 2 ** 22, start: "1" } }));
      rmSync(join(home, "docker/sandboxes/lost"), { recursive: true });
      const next = newEngine({}, home);
      expect((await next.list()).map(({ id }) => id)).toEqual(["kept"]);
      const [kept] = await next.list();
      expect(await leftovers(home)).toHaveLength(2);
      await kept?.destroy();
      expect(await leftovers(home)).toEqual([]);
      expect(await textAt(other, "/health")).toContain("true");
    });

    it.each(crashes)("of a killed server, container or daemon's helper is adopted complete or removed (%i)", async (seed) => {
      const target = (["server", "server", "container", "helper"] as const)[(seed - 1) % 4];
      const home = newHome();
      const creating = spawn(process.execPath, [creator, home, daemon.socket], { stdio: ["ignore", "pipe", "inherit"] });
      const gone = once(creating, "exit");
      try {
        const [said] = (await once(creating.stdout.setEncoding("utf8"), "data")) as [string];
        if (target !== "server") {
          // The first process of a container, or the process of containerd above it. The first sandbox of a lane is there until the end.
          const label = [`${HOME_LABEL}=${readFileSync(join(home, "docker/home-id"), "utf8")}`, `${SANDBOX_LABEL}=${said.split("\n")[0]}`];
          const [one] = await api.list("/containers/json", { filters: JSON.stringify({ label }) });
          const { State: state } = await api.call("GET", `/containers/${one?.Id}/json`);
          const { Pid: pid } = state as { Pid: number };
          const parent = Number(/^PPid:\t(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]);
          process.kill(target === "container" ? pid : parent, "SIGKILL");
        }
        await setTimeout((seed * 173) % 400);
      } finally {
        creating.kill("SIGKILL");
        await gone;
      }
      const next = newEngine({}, home);
      for (const sandbox of await next.list()) {
        // Unless it has been killed, and the daemon has not noticed yet.
        const answer = await Promise.race([textAt(sandbox, "/health").catch(() => "gone"), sandbox.exited.then(() => "gone")]);
        expect(answer).toMatch(target === "server" ? /true/ : /true|gone/);
        await sandbox.destroy();
      }
      // The daemon may still be carrying out a request of the killed process.
      await expect.poll(async () => [...(await next.list()), ...(await leftovers(home))], { timeout: 20_000 }).toEqual([]);
      await next.close();
      expect(await allLeftovers(home)).toEqual([]);
    });

    it.skipIf(missing("runsc") !== null)("runs with the kernel of gVisor", async () => {
      const engine = newEngine({ runtime: "runsc" });
      const sandbox = await make(engine, { resources: { memoryMb: 512, processes: 100 } });
      expect(await textAt(sandbox, "/health")).toContain("true");
      expect(await run(engine, sandbox, "cat /proc/version")).toMatch(/Linux version 4\.4|gvisor|4\.19/i);
      expect(await run(engine, sandbox, "touch /.aenv/run/file || echo refused")).toContain("refused");
      await expect(sandbox.egress?.set("open")).rejects.toMatchObject({ message: expect.stringContaining("gVisor reads its network") });
      const open = await make(engine, { ...plain, id: "open", egress: "open" });
      expect(await run(engine, open, "grep -c eth0 /proc/net/dev")).toBe("1");
    });

    it("has policies that its runtime can apply, and others are named before it is created", () => {
      const problems = (engine: DockerEngine, runtime?: "runsc") =>
        [["open"], ["none", "open"], ["open", "none", "open"], ["none", { allow: ["example.com"] }]].map((policies) =>
          engine.egress.problem?.(policies as EgressPolicy[], runtime),
        );
      const gvisor = expect.stringContaining("gVisor reads its network at the start");
      expect(problems(newEngine())).toEqual([null, null, null, null]);
      for (const all of [problems(newEngine(), "runsc"), problems(newEngine({ runtime: "runsc" }))])
        expect(all).toEqual([null, gvisor, null, gvisor]);
    });

    it("reports a daemon that does not answer, with what to do", async () => {
      const engine = newEngine({ socket: "/nowhere/docker.sock" });
      const expected = { code: "sandbox.lost", message: expect.stringMatching(/\/nowhere\/docker\.sock does not answer.*--docker-socket/) };
      await expect(make(engine)).rejects.toMatchObject(expected);
      await expect(engine.list()).rejects.toMatchObject(expected);
      engines.pop();
      await engine.close();
    });
  });
});

/** A server that is not ready at once. It has no quotes, for the image's settings. */
const server =
  "require(`http`).createServer((q, s) => s.end(JSON.stringify({ uid: process.getuid(), folder: process.cwd(), greeting: process.env.GREETING + ` ` + process.env.NAME }))).listen(3000)";

function textAt({ address }: Sandbox, path: string, method = "GET"): Promise<string> {
  const where = address.kind === "unix" ? { socketPath: address.path } : { host: address.host, port: address.port };
  return new Promise((resolve, reject) => {
    get({ ...where, path, method, agent: false }, async (response) =>
      resolve(await Readable.prototype.toArray.call(response).then(String)),
    ).on("error", reject);
  });
}
