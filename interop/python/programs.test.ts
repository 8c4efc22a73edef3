import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { Episode, scriptedAgent } from "@aenv/rollout";
import { Environment } from "@aenv/sdk";
import {
  type DockerDaemon,
  describeNeeding,
  type ImageRegistry,
  ORIGINAL_SDK_PORT,
  originalSdkImage,
  pythonPath,
  startDocker,
  startImageRegistry,
  temporaryTree,
} from "@aenv/testing";
import { type Platform, publish, startPlatform } from "aenvironment/platform-tests";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { freeLoopback, ORIGINAL_PORT } from "./original.ts";

const TOOLS = ["get_weather", "greet", "forecast", "temperatures", "nothing", "picture", "fail"];

/** The environment of twin.py, used with both SDKs. */
async function expectTwin(platform: Platform, host: string, health: object): Promise<void> {
  const { stdout } = await promisify(execFile)(pythonPath, [join(import.meta.dirname, "twin_remote.py"), `http://${host}`, "twin@1.0.0"], {
    env: { ...process.env, PYTHONDONTWRITEBYTECODE: "1" },
    timeout: 120_000,
  });
  expect(JSON.parse(stdout.trim().split("\n").at(-1) ?? "")).toEqual({
    tools: TOOLS.map((name) => `twin@1.0.0/${name}`),
    object: { content: [{ type: "text", text: expect.stringContaining("Beijing") }], is_error: false },
    error: { content: [{ type: "text", text: expect.stringContaining("no wind") }], is_error: true },
    functions: ["get_weather_func", "explode"],
    function: { city: "Rome", temperature: "20" },
    rewards: [true, false],
    health: { success: true, data: expect.objectContaining(health) },
  });
  const { controlUrl, dataUrl } = platform;
  await using env = await Environment.create("twin@1.0.0", { controlUrl, dataUrl });
  expect((await env.listTools()).map(({ name }) => name)).toEqual(TOOLS.map((name) => `twin@1.0.0/${name}`));
  expect((await env.callTool("greet", { name: "Ada" })).text).toBe("Hello, Ada!");
  expect(await env.callFunction("get_weather_func", { city: "Rome" })).toEqual({ city: "Rome", temperature: "20" });
  expect(await env.callReward({ city: "Beijing" })).toBe(true);
  expect(await env.checkHealth()).toMatchObject({ success: true, data: health });
  await expect(env.reset()).rejects.toMatchObject({ code: "instance.unsupported" });
  await expectEpisode(env);
}

/** The original's servers have neither tasks nor a reset: an episode is played on a fresh instance, without a task. */
async function expectEpisode(instance: Environment): Promise<void> {
  const signal = AbortSignal.timeout(60_000);
  const now = () => performance.now();
  const episode = await Episode.begin({ instance, task: null, seed: 7, limits: {}, signal, recordsDigests: false, now });
  const { tools, wasReset } = episode;
  const agent = scriptedAgent([{ tool: "greet", arguments: { name: "Ada" } }]);
  const player = await agent.begin({ task: { id: null, instruction: null }, tools, seed: 7, oracle: async () => null });
  expect([wasReset, await episode.play(player)]).toEqual([false, "done"]);
  expect(episode.record.steps).toMatchObject([{ call: { name: "greet" }, result: { is_error: false } }]);
  expect(await episode.score({ city: "Beijing" })).toMatchObject({ kind: "scored", reward: 1 });
}

describeNeeding("python", "an environment of the original Python SDK as a command", () => {
  it("is published from its folder, and runs as a process with both SDKs", { timeout: 240_000 }, async () => {
    const command = [pythonPath, "-m", "aenv.main", "twin.py", "--host", "{host}", "--port", "{port}"];
    using project = temporaryTree({
      // Its own health check asks port 8081 of this machine, whatever its port is.
      "config.json": { name: "twin", version: "1.0.0", runtime: { command, healthPath: "/functions/list" } },
      "twin.py": readFileSync(join(import.meta.dirname, "twin.py"), "utf8"),
    });
    const host = freeLoopback();
    await using platform = await startPlatform({ flags: { host, controlPort: 8080, dataPort: ORIGINAL_PORT } });
    await publish(platform, project.path);
    const published = (await platform.demand("GET", "/env/twin/1.0.0")) as { metadata: { tools: { name: string }[] }; status: unknown };
    expect(published.metadata.tools.map(({ name }) => name)).toEqual(TOOLS);
    await expectTwin(platform, host, { status: "healthy" });
  });
});

describeNeeding("python", "an image with the original Python SDK behind the gateway", () => {
  describeNeeding("mmdebstrap", "of Debian", () => {
    describeNeeding("skopeo", "copied by skopeo", () => {
      describeNeeding("docker-registry", "to a registry", () => {
        let registry: ImageRegistry;
        let image: string;
        beforeAll(async () => {
          registry = await startImageRegistry();
          image = await registry.push(await originalSdkImage(), "team/twin:1");
        }, 15 * 60_000);
        afterAll(async () => {
          await registry?.[Symbol.asyncDispose]();
        });

        describeNeeding("runc", "with the engine oci", () => {
          describeImage(() => ({ engine: "oci", registryAuth: registry.authFile, insecureRegistries: [registry.host] }));
        });

        describeNeeding("docker", "with the engine docker", () => {
          let daemon: DockerDaemon;
          beforeAll(async () => {
            daemon = await startDocker();
          }, 120_000);
          afterAll(async () => {
            await daemon?.[Symbol.asyncDispose]();
          }, 60_000);
          describeImage(() => ({
            engine: "docker",
            dockerSocket: daemon.socket,
            registryAuth: registry.authFile,
            imageRegistries: [registry.host],
          }));
        });

        function describeImage(flags: () => Readonly<Record<string, unknown>>): void {
          describe("the platform", () => {
            const host = freeLoopback();
            let platform: Platform;
            beforeAll(async () => {
              platform = await startPlatform({
                flags: { host, controlPort: 8080, dataPort: ORIGINAL_PORT, startTimeout: "7m", ...flags() },
              });
            }, 120_000);
            afterAll(async () => {
              await platform?.close();
            }, 120_000);

            const publishImage = async (name: string, more: object) => {
              await platform.demand("POST", "/env", { name, version: "1.0.0", artifacts: [{ type: "image", content: image }], ...more });
              return `${name}@1.0.0`;
            };
            const open = (ref: string) =>
              Environment.create(ref, { controlUrl: platform.controlUrl, dataUrl: platform.dataUrl, startupTimeoutMs: 420_000 });

            it("runs its server unchanged, with both SDKs", { timeout: 600_000 }, async () => {
              const ref = await publishImage("twin", { deployConfig: { port: ORIGINAL_SDK_PORT } });
              // The first one also pulls the image, for which the original's client does not wait.
              await using _first = await open(ref);
              await expectTwin(platform, host, { status: "success", details: { tool_count: TOOLS.length } });
            });

            it("runs another server of it", { timeout: 120_000 }, async () => {
              const command = ["python3", "-m", "http.server", "--bind", "{host}", "{port}"];
              const ref = await publishImage("files", { runtime: { command, port: 9000, healthPath: "/" } });
              await using env = await open(ref);
              expect(await env.checkHealth()).toMatchObject({ data: { status: "healthy", message: "GET / answered 200" } });
              const { instanceId } = await env.getEnvInfo();
              const page = await fetch(`${platform.dataUrl}/env-instance/${instanceId}/twin.py`);
              expect([page.status, await page.text()]).toEqual([200, expect.stringContaining("register_reward")]);
            });

            it("is a sandbox for commands, files and ports without a server", { timeout: 120_000 }, async () => {
              const ref = await publishImage("plain", { deployConfig: { ports: [9000] } });
              await using env = await open(ref);
              expect(await env.sandbox.exec(["python3", "-c", "print(6 * 7)"])).toMatchObject({ exitCode: 0, stdout: "42\n" });
              await env.sandbox.files.write("/srv/note.txt", "hello");
              await env.sandbox.spawn(["python3", "-m", "http.server", "--directory", "/srv", "9000"]);
              const url = await env.presignUrl(9000);
              await expect.poll(async () => (await fetch(`${url}/note.txt`)).text(), { timeout: 60_000 }).toBe("hello");
              await expect(env.listTools()).rejects.toMatchObject({ code: "instance.unsupported" });
            });
          });
        }
      });
    });
  });
});
