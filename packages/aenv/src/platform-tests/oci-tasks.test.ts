import { existsSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  describeNeeding,
  dockerAuth,
  type ImageRegistry,
  pushSmallImage,
  startImageRegistry,
  type Tree,
  temporaryTree,
} from "@aenv/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { callFunction, callTool, urlOf } from "./calls.ts";
import { type ServerProcess, startServerProcess } from "./crash/server-process.ts";
import { projects, publish } from "./platform.ts";

describeNeeding("runc", "sandboxes that environment code opens, with the engine oci", () =>
  describeNeeding("docker-registry", "and images of a registry", () => {
    let home: string;
    let registry: ImageRegistry;
    let auth: Tree;
    let server: ServerProcess;
    const start = () =>
      startServerProcess(home, {
        flags: {
          engine: "oci",
          registryAuth: join(auth.path, "auth.json"),
          insecureRegistries: [registry.host],
          poolMin: 0,
          poolMax: 1,
          round: "200ms",
        },
      }).ready;

    beforeAll(async () => {
      home = realpathSync(mkdtempSync(join(tmpdir(), "aenv-tasks-")));
      registry = await startImageRegistry();
      auth = temporaryTree({ "auth.json": dockerAuth(registry) });
      await pushSmallImage(registry, { name: "team/tasks:one", files: { "task.txt": "task one\n" } });
      const config = { WorkingDir: "/home/app", User: "app", Env: ["PATH=/usr/bin:/bin", "PLACE=image"] };
      await pushSmallImage(registry, { name: "team/tasks:two", files: { "task.txt": "task two\n" }, config });
      server = await start();
    }, 180_000);
    afterAll(async () => {
      await server?.stop();
      await registry?.[Symbol.asyncDispose]();
      auth?.[Symbol.dispose]();
      expect(leftOver()).toEqual([]);
      rmSync(home, { recursive: true, force: true });
    }, 60_000);

    const bash = async (id: string, command: string, more: object = {}) => {
      const { text, isError, message } = await callTool(urlOf(server, id), "bash", { command, ...more });
      if (text === null || isError) throw new Error(`the call failed: ${text} ${message}`);
      return JSON.parse(text);
    };
    const outputOf = async (id: string, command: string) => (await bash(id, command)).stdout;
    const reward = async (id: string) => {
      const sent = { method: "POST", body: "{}", headers: { "content-type": "application/json" } };
      return (await fetch(urlOf(server, id, "/task/reward"), sent)).json() as Promise<{ data?: unknown; error?: string }>;
    };
    const exec = async (id: string, command: readonly string[]) =>
      ((await server.demand("POST", `/env-instance/${id}/exec`, { command, wait: true })) as { stdout: string }).stdout;
    const reached = async (address: string, port: number) => {
      const { url } = (await server.demand("POST", `/env-instance/${address}/presign-url`, { port })) as { url: string };
      const answer = await fetch(url);
      return [answer.status, await answer.text()];
    };
    const namesIn = (folder: string) => (existsSync(join(home, folder)) ? readdirSync(join(home, folder)) : []);
    const tasksLeft = () => namesIn("oci/sandboxes").filter((name) => name.startsWith("task-"));
    const mounts = () => readFileSync("/proc/self/mountinfo", "utf8").split("\n");
    const sharedLeft = () => [
      ...namesIn("shared"),
      ...namesIn("shared-disks"),
      ...mounts().filter((line) => line.includes(`${home}/shared`)),
    ];
    const leftOver = () => [...tasksLeft(), ...sharedLeft()];
    const end = async (id: string) => {
      await server.demand("DELETE", `/env-instance/${id}`);
      expect(leftOver()).toEqual([]);
    };

    describe("a second container", () => {
      let ref: string;
      let id: string;
      beforeAll(async () => {
        const deployConfig = { podTemplate: "dualCONTAINER", imagePrefix: `${registry.host}/team/tasks` };
        ref = await publish(server, projects.repair, { deployConfig });
        ({ id } = await server.create(ref, { datasource: "two" }));
      }, 120_000);

      it("has the image that the datasource names, its working directory, variables and user", async () => {
        expect(await bash(id, "cat /task.txt; id -u; pwd; echo $PLACE; echo oops >&2; exit 3")).toMatchObject({
          exitCode: 3,
          stdout: "task two\n1000\n/home/app\nimage\n",
          stderr: "oops\n",
        });
      });

      it("runs commands with limits that do not lose the exit code, and with input, as any user", async () => {
        expect(await bash(id, "head -c 5000000 /dev/zero; exit 7")).toMatchObject({ exitCode: 7, droppedBytes: 4_999_000 });
        expect(await bash(id, "cat; exit 1", { stdin: "given" })).toMatchObject({ exitCode: 1, stdout: "given" });
        expect(await bash(id, "id -u", { user: "root" })).toMatchObject({ stdout: "0\n" });
        expect(await bash(id, "sleep 600", { timeoutMs: 300 })).toMatchObject({ timedOut: true });
        // A process that the command leaves behind does not hold it up.
        expect(await bash(id, "sleep 600 >/dev/null 2>&1 & echo started")).toMatchObject({ exitCode: 0, stdout: "started\n" });
      });

      it("keeps a shell through several calls", async () => {
        const type = async (line: string) => (await callTool(urlOf(server, id), "type", { line })).text;
        expect(await type("HERE=there; echo $HERE")).toBe("there\n");
        expect(await type("echo again $HERE")).toBe("again there\n");
      });

      it("has files that the environment's code reads and writes", async () => {
        await bash(id, "mkdir /work /copy && chmod 777 /work /copy", { user: "root" });
        expect(await callFunction(server, id, "files")).toEqual({
          text: "onetwo",
          part: "etw",
          listed: [
            ["b.txt", "file", 6],
            ["big", "file", 3_000_000],
            ["empty", "directory", 0],
          ],
          gone: "file.not_found",
        });
      });

      it("shares the folder /shared with the environment, and is what the trainer's commands run in", async () => {
        await bash(id, "echo from the agent > /shared/note");
        expect(await callFunction(server, id, "shared")).toBe("from the agent\n");
        expect(await exec(id, ["cat", "/task.txt"])).toBe("task two\n");
        expect(await exec(`${id}.second`, ["cat", "/task.txt"])).toBe("task two\n");
        expect(await exec(`${id}.main`, ["node", "-p", "fs.existsSync('/task.txt')"])).toBe("false\n");
      });

      it("is what links to ports lead to, unless the environment itself is named", async () => {
        const listen = "http.createServer((_, response) => response.end('main')).listen(4100, '127.0.0.1', () => console.log('listening'))";
        const started = await fetch(`${server.controlUrl}/env-instance/${id}.main/exec`, {
          method: "POST",
          body: JSON.stringify({ command: ["node", "-e", listen] }),
          headers: { "content-type": "application/json" },
        });
        const events = (started.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream()).getReader();
        for (let text = ""; !text.includes("listening"); ) text += (await events.read()).value ?? "";
        expect(await reached(`${id}.main`, 4100)).toEqual([200, "main"]);
        for (const address of [id, `${id}.second`])
          expect(await reached(address, 4100)).toEqual([502, expect.stringContaining("nothing in the sandbox listens on port 4100")]);
        await events.cancel();
      });

      it("is not what a reward with a fresh sandbox sees", async () => {
        await bash(id, "mkdir /planted; echo x > /planted/a; echo cheated > /task.txt; echo -n 42 > /answer", { user: "root" });
        expect((await reward(id)).data).toMatchObject({ reward: 1, seen: "task two\n" });
        expect(tasksLeft()).toHaveLength(1);
      });

      it("is replaced at a reset, and ends with its instance", async () => {
        await server.demand("POST", `/env-instance/${id}/reset`, {});
        expect(await outputOf(id, "cat /task.txt")).toBe("task two\n");
        await expect.poll(tasksLeft, { timeout: 20_000 }).toHaveLength(1);
        expect(await server.ask("POST", `/env-instance/${id}/fork`, { count: 1 })).toMatchObject({
          status: 501,
          message: expect.stringContaining("/shared"),
        });
        await end(id);
      });

      it("fails the start if its image cannot be pulled, and leaves nothing", async () => {
        const answer = await server.ask("POST", "/env-instance", { envName: ref, datasource: "missing" });
        expect(answer).toMatchObject({ success: false, message: expect.stringContaining("team/tasks:missing") });
        await expect.poll(leftOver, { timeout: 20_000 }).toEqual([]);
      });

      it("is not an image at an internal address, which a caller may name as the data source", async () => {
        for (const host of ["169.254.169.254", "10.0.0.1:5000", registry.host.replace(/\d+$/, "1")])
          expect(await server.ask("POST", "/env-instance", { envName: ref, datasource: `${host}/team/x:1` })).toMatchObject({
            success: false,
            message: expect.stringMatching(/the image '.*' is refused: its registry .* has no public address; .*imageRegistries/),
          });
        await expect.poll(leftOver, { timeout: 20_000 }).toEqual([]);
      });
    });

    for (const [runtime, version] of [
      ["runc", "1.0.1"],
      ["runsc", "1.0.2"],
    ] as const)
      describeNeeding(runtime, `the folder of two containers of ${runtime} with a disk limit`, () => {
        it("has that limit too, and ends with its instance, also if the server was killed meanwhile", async () => {
          const deployConfig = {
            podTemplate: "dualContainer",
            imagePrefix: `${registry.host}/team/tasks`,
            ephemeralStorage: "32Mi",
            runtime,
          };
          const ref = await publish(server, projects.repair, { version, deployConfig });
          const { id } = await server.create(ref, { datasource: "one" });
          expect(await bash(id, "ls -A /shared; echo from the agent > /shared/note; cat /shared/note")).toMatchObject({
            stdout: "from the agent\n",
          });
          expect(await bash(id, "head -c 50000000 /dev/zero > /shared/large")).toMatchObject({
            stderr: expect.stringMatching(/no space left/i),
          });
          expect(
            await exec(`${id}.main`, ["sh", "-c", "cat /shared/note; (echo more > /shared/more) 2>&1 | grep -o -i 'no space'"]),
          ).toMatch(/^from the agent\n(no space\n)?$/i);
          await bash(id, "rm /shared/large");
          expect(await callFunction(server, id, "shared")).toBe("from the agent\n");
          await server.kill();
          server = await start();
          expect(await outputOf(id, "cat /shared/note")).toBe("from the agent\n");
          await server.demand("POST", `/env-instance/${id}/reset`, {});
          expect(await outputOf(id, "cat /shared/note")).toBe("from the agent\n");
          await end(id);
        }, 120_000);
      });

    describe("sandboxes of instances that share a process", () => {
      let ref: string;
      beforeAll(async () => {
        const deployConfig = { taskSandboxes: { images: [`${registry.host}/team/*`], atOnce: 2, memory: "256Mi" } };
        ref = await publish(server, projects.repair, { isolation: "shared", deployConfig });
      }, 120_000);
      const create = (tag: string) => server.create(ref, { environment_variables: { IMAGE: `${registry.host}/team/tasks:${tag}` } });

      it("are chosen by setup, and belong to one instance each", async () => {
        const [one, two] = await Promise.all([create("one"), create("two")]);
        expect([await outputOf(one.id, "cat /task.txt; echo $FROM"), await outputOf(two.id, "cat /task.txt")]).toEqual([
          "task one\nsetup\n",
          "task two\n",
        ]);
        expect(await callFunction(server, one.id, "open")).toMatchObject({ name: "task-2", all: ["task", "task-2"], image: null });
        const refuse = async (args: object) => {
          const sent = { method: "POST", body: JSON.stringify(args), headers: { "content-type": "application/json" } };
          return ((await (await fetch(urlOf(server, two.id, "/functions/open"), sent)).json()) as { error: string }).error;
        };
        expect(await refuse({ image: "other/image:1" })).toContain("deployConfig.taskSandboxes.images");
        expect(await refuse({ memoryMb: 512 })).toContain("deployConfig.taskSandboxes.memory");
        expect(await callFunction(server, two.id, "open")).toBeDefined();
        expect(await refuse({})).toContain("deployConfig.taskSandboxes.atOnce");
        // The process is shared, the sandbox of the task is not.
        expect(await reached(two.id, 4100)).toEqual([502, expect.stringContaining("sandbox.port_closed")]);
        expect(await server.ask("POST", `/env-instance/${two.id}.main/presign-url`, { port: 4100 })).toMatchObject({ status: 501 });
        await server.demand("DELETE", `/env-instance/${one.id}`);
        expect(tasksLeft()).toHaveLength(2);
        await end(two.id);
      }, 60_000);

      it("are taken from those that wait for their image, the task's own and those of rewards", async () => {
        const recordsIn = (folder: string) =>
          namesIn(folder)
            .filter((name) => !name.startsWith("."))
            .map((name) => JSON.parse(readFileSync(join(home, folder, name, "record.json"), "utf8")));
        const layersOf = ({ files }: { files: { layers: string[] } }) => JSON.stringify(files.layers);
        // Containers of the task's image that run and that no sandbox has taken.
        const waiting = (layers: string) => {
          const taken = new Set(recordsIn("oci/sandboxes").map(({ container }) => container));
          const running = recordsIn("oci/containers").filter(({ id, process }) => process !== null && !taken.has(id));
          return running.filter((container) => layersOf(container) === layers).map(({ id }) => id);
        };
        const prepared = async (layers: string) => {
          await expect.poll(() => waiting(layers), { timeout: 30_000 }).toHaveLength(1);
          return waiting(layers);
        };
        const hostOf = async (id: string) => (await outputOf(id, "cat /proc/sys/kernel/hostname")).trim();
        const { id: first } = await create("one");
        const own = await hostOf(first);
        const layers = layersOf(recordsIn("oci/containers").find(({ id }) => id === own));
        const forTask = await prepared(layers);
        const { id } = await create("one");
        expect(forTask).toEqual([await hostOf(id)]);
        for (const _ of [1, 2]) {
          const forReward = await prepared(layers);
          expect((await reward(id)).data).toMatchObject({ host: forReward[0] });
        }
        await server.demand("DELETE", `/env-instance/${first}`);
        await end(id);
      }, 120_000);

      it("are copied with their files by a fork", async () => {
        const { id } = await create("one");
        await bash(id, "echo before > /kept");
        const [fork] = (await server.demand("POST", `/env-instance/${id}/fork`, { count: 1 })) as [{ id: string }];
        await bash(id, "echo after > /kept");
        expect(await outputOf(fork.id, "cat /kept; cat /task.txt; echo $FROM")).toBe("before\ntask one\nsetup\n");
        expect(readdirSync(join(home, "oci/snapshots"))).toEqual([]);
        await server.demand("DELETE", `/env-instance/${id}`);
        await end(fork.id);
      }, 60_000);

      it("go on after a kill of the server, and none is left of a start that it interrupted", async () => {
        const { id } = await create("one");
        await bash(id, "echo before > /kept");
        const variables = { IMAGE: `${registry.host}/team/tasks:two`, HANG: "yes" };
        const interrupted = server.ask("POST", "/env-instance", { envName: ref, environment_variables: variables }).catch(() => null);
        await expect.poll(tasksLeft, { timeout: 30_000 }).toHaveLength(2);
        const running = callTool(urlOf(server, id), "bash", { command: "sleep 600" }).catch(() => null);
        await server.kill();
        await Promise.all([interrupted, running]);
        server = await start();
        await expect.poll(tasksLeft, { timeout: 30_000 }).toHaveLength(1);
        expect(await outputOf(id, "cat /kept")).toBe("before\n");
        expect((await reward(id)).data).toMatchObject({ seen: "task one\n" });
        await end(id);
      }, 120_000);
    });
  }),
);
