import { once } from "node:events";
import { createServer, request } from "node:http";
import { performServerHandshake, type ServerHttp2Stream } from "node:http2";
import type { AddressInfo, Socket } from "node:net";
import { frameHead, LINK_INSTANCE, LINK_PROTOCOL } from "@aenv/contract";
import { describe, expect, it, onTestFinished } from "vitest";
import { EpisodeSandboxes } from "../sandboxes/episode-sandboxes.ts";
import { PlatformLink } from "./link.ts";

type Answer = (path: string, parameters: Record<string, unknown>, stream: ServerHttp2Stream) => void;

/** A process of an environment whose platform answers as the test says. */
async function linked(answer: Answer) {
  const link = new PlatformLink({ waitMs: 300 });
  const server = createServer().listen(0, "127.0.0.1");
  server.on("upgrade", (_, socket) => link.accept(socket as Socket));
  await once(server, "listening");
  const sockets: Socket[] = [];
  const dial = async () => {
    const { port } = server.address() as AddressInfo;
    const sent = request({ host: "127.0.0.1", port, headers: { connection: "upgrade", upgrade: LINK_PROTOCOL }, agent: false }).end();
    const [, socket, head] = (await once(sent, "upgrade")) as [unknown, Socket, Buffer];
    sockets.push(socket);
    if (head.length > 0) socket.unshift(head);
    const session = performServerHandshake(socket);
    session.on("error", () => {});
    session.on("stream", (stream, headers) => {
      let text = "";
      stream.on("error", () => {});
      stream.setEncoding("utf8").on("data", (piece: string) => {
        const isFirst = !text.includes("\n");
        text += piece;
        if (isFirst && text.includes("\n"))
          answer(String(headers[":path"]), { ...JSON.parse(text.split("\n")[0] as string), instance: headers[LINK_INSTANCE] }, stream);
      });
    });
    return session;
  };
  onTestFinished(() => {
    link.close();
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const episode = new EpisodeSandboxes(link, { second: false }, "shop-1");
  return { link, dial, episode, ...episode.for() };
}

const json = (stream: ServerHttp2Stream, body: unknown, status = 200) => {
  stream.respond({ ":status": status });
  stream.end(JSON.stringify(body));
};
const frame = (channel: "event" | "stdout" | "stderr", data: string) =>
  Buffer.concat([frameHead(channel, Buffer.byteLength(data)), Buffer.from(data)]);
const ended = {
  type: "ended",
  exit_code: 3,
  signal: null,
  timed_out: false,
  out_of_memory: false,
  interruption: null,
  duration_ms: 5,
  dropped_bytes: 0,
};

/** Opens sandboxes, and lets `run` answer the commands. */
const platform =
  (run: (stream: ServerHttp2Stream) => void): Answer =>
  (path, _, stream) => {
    if (path === "/open") json(stream, { id: "task-1", image: "team/one" });
    else if (path === "/run") run(stream);
    else json(stream, null);
  };

describe("the connection to the platform", () => {
  it("carries the parameters, the instance and the result of a command", async () => {
    const seen: Record<string, unknown>[] = [];
    const { dial, sandbox, sandboxes } = await linked((path, parameters, stream) => {
      seen.push({ path, ...parameters });
      platform((run) => {
        run.respond({ ":status": 200 });
        run.write(frame("event", JSON.stringify({ type: "started", process: 1, pid: 2 })));
        run.write(Buffer.concat([frame("stdout", "a"), frame("stderr", "e"), frame("stdout", "b")]));
        run.end(frame("event", JSON.stringify(ended)));
      })(path, parameters, stream);
    });
    await dial();
    await sandboxes.open({ image: "team/one", memoryMb: 64, capabilities: "minimal", env: { A: "1" } });
    expect(await sandbox.exec("true", { cwd: "/work", env: { B: "2" } })).toEqual({
      exitCode: 3,
      signal: null,
      timedOut: false,
      outOfMemory: false,
      interruption: null,
      durationMs: 5,
      droppedBytes: 0,
      stdout: "ab",
      stderr: "e",
    });
    expect(seen).toMatchObject([
      { path: "/open", instance: "shop-1", name: "task", purpose: "open", image: "team/one", memory_mb: 64, capabilities: "minimal" },
      { path: "/run", instance: "shop-1", sandbox: "task-1", command: "true", cwd: "/work", env: { A: "1", B: "2" }, has_input: false },
    ]);
  });

  it("gives errors of the platform with their codes", async () => {
    const { dial, sandboxes } = await linked((_, __, stream) =>
      json(stream, { code: "quota.exceeded", message: "too many", retryable: true }, 400),
    );
    await dial();
    await expect(sandboxes.open()).rejects.toMatchObject({ code: "quota.exceeded", message: "too many", retryable: true });
    expect(sandboxes.list()).toEqual([]);
  });

  it("that is lost during a command is an error of the platform, and the next command uses a new one", async () => {
    let isLost = true;
    const { dial, sandbox, sandboxes } = await linked(
      platform((stream) => {
        if (isLost) stream.session?.destroy();
        else {
          stream.respond({ ":status": 200 });
          stream.end(frame("event", JSON.stringify(ended)));
        }
        isLost = false;
      }),
    );
    await dial();
    await sandboxes.open();
    await expect(sandbox.exec("true")).rejects.toMatchObject({ code: "sandbox.lost", retryable: true });
    const waiting = sandbox.exec("true");
    await dial();
    expect(await waiting).toMatchObject({ exitCode: 3 });
  });

  it("that breaks off in the middle of a result is an error too", async () => {
    const { dial, sandbox, sandboxes } = await linked(
      platform((stream) => {
        stream.respond({ ":status": 200 });
        stream.end(frame("stdout", "half"));
      }),
    );
    await dial();
    await sandboxes.open();
    await expect(sandbox.exec("true")).rejects.toMatchObject({ code: "sandbox.lost" });
  });

  it("is waited for only for a while", async () => {
    const { sandboxes } = await linked(() => {});
    await expect(sandboxes.open()).rejects.toMatchObject({ code: "sandbox.lost", message: expect.stringContaining("within 0.3 s") });
  });

  it("cancels a command when the call is cancelled", async () => {
    const [begun, cancelled] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const { dial, episode, sandboxes } = await linked(
      platform((stream) => {
        begun.resolve();
        stream.once("close", cancelled.resolve);
      }),
    );
    await dial();
    await sandboxes.open();
    const controller = new AbortController();
    const running = episode.for(controller.signal).sandbox.exec("sleep 600");
    await begun.promise;
    controller.abort(new Error("the client cancelled"));
    await expect(running).rejects.toThrow("the client cancelled");
    await cancelled.promise;
  });
});
