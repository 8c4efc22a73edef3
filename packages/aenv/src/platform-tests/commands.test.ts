import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import { Environment, InstanceSandbox, SchedulerClient } from "@aenv/sdk";
import { describeNeeding, temporaryTree } from "@aenv/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Platform, type PlatformOptions, projects, publish, startPlatform } from "./platform.ts";
import { frozenMetrics, untilFrozen } from "./testing/frozen.ts";

type Headers = { readonly authorization: string };
type Event = Readonly<Record<string, unknown>> & { readonly type: string };

/** Engines whose sandboxes run commands; the same claims hold for all of them. */
const engines: readonly { readonly name: string; readonly needs: "go"; readonly options: PlatformOptions }[] = [
  { name: "process", needs: "go", options: { flags: { processCommands: true } } },
];

for (const { name, needs, options } of engines) {
  describeNeeding(needs, `commands and files in a sandbox of the engine '${name}'`, () => {
    let platform: Platform;
    let ada: Headers;
    let bob: Headers;
    let id: string;

    beforeAll(async () => {
      platform = await startPlatform({ ...options, flags: { access: "on", commandsPerInstance: 4, ...options.flags } });
      ada = await platform.token("ada", "publisher", "trainer");
      bob = await platform.token("bob", "publisher", "trainer");
      const ref = await publish(platform, projects.tally, { headers: ada });
      ({ id } = await platform.create(ref, {}, ada));
    });
    afterAll(() => platform?.close());

    const request = (method: string, path: string, init: RequestInit = {}, headers: Headers = ada) =>
      fetch(`${platform.controlUrl}/env-instance/${id}/${path}`, { method, ...init, headers: { ...headers, ...init.headers } });
    const run = async (body: object) =>
      (await platform.demand("POST", `/env-instance/${id}/exec`, { wait: true, ...body }, ada)) as Record<string, unknown>;
    const start = (body: object, signal?: AbortSignal) =>
      request("POST", "exec", { body: JSON.stringify(body), headers: { "content-type": "application/json" }, signal: signal ?? null });
    const file = (path: string) => `files?path=${encodeURIComponent(path)}`;

    it("runs a text by the shell and a list as it is, and returns outputs and the exit code", async () => {
      expect(await run({ command: "echo out; echo err >&2; exit 3" })).toMatchObject({
        stdout: "out\n",
        stderr: "err\n",
        exit_code: 3,
        signal: null,
        timed_out: false,
        dropped_bytes: 0,
      });
      expect(await run({ command: ["printf", "%s", "$HOME;x"] })).toMatchObject({ stdout: "$HOME;x", exit_code: 0 });
    });

    it("gives a command its input, variables and working directory", async () => {
      await platform.demand("POST", `/env-instance/${id}/files/mkdir`, { path: "deep/down", parents: true }, ada);
      const answer = await run({ command: 'cat; echo "$A"; basename "$PWD"', stdin: "in\n", env: { A: "a b" }, cwd: "deep/down" });
      expect(answer).toMatchObject({ stdout: "in\na b\ndown\n" });
      const bytes = randomBytes(300_000);
      const input = { stdin_base64: bytes.toString("base64"), encoding: "base64" };
      expect(await run({ command: ["cat"], ...input })).toMatchObject({ stdout: input.stdin_base64 });
    });

    it("ends a command after its timeout, and returns the output until then", async () => {
      expect(await run({ command: "echo begun; sleep 600", timeout_ms: 200 })).toMatchObject({ stdout: "begun\n", timed_out: true });
    });

    it("keeps the beginning and the end of an output that is longer than the limit", async () => {
      const answer = await run({ command: "seq 1 100000", max_output_bytes: 20 });
      expect(answer.stdout).toBe("1\n2\n3\n4\n5\n99\n100000\n");
      expect(answer.dropped_bytes).toBe(588_895 - 20);
    });

    it("says what is wrong with a command that cannot be started", async () => {
      const failures = [
        [{ command: ["no-such-program"] }, "command.not_started", /no program "no-such-program"/],
        [{ command: "true", cwd: "/no/such/folder" }, "command.not_started", /\/no\/such\/folder/],
        [{ command: "true", user: "nobody-here" }, "command.not_started", /nobody-here/],
        [{ command: [] }, "request.invalid", /command/],
        [{ command: "true", shell: "zsh" }, "request.invalid", /shell/],
      ] as const;
      for (const [body, code, message] of failures) {
        const answer = await platform.ask("POST", `/env-instance/${id}/exec`, { wait: true, ...body }, ada);
        expect([answer.status, answer.error?.code]).toEqual([400, code]);
        expect(answer.message).toMatch(message);
      }
    });

    it("streams output as events while the command runs", async () => {
      const seen = await all(await start({ command: "printf 'é' | head -c 1; read go; printf 'é\\n' | tail -c 2; exit 7", stdin: "go\n" }));
      expect(seen[0]).toMatchObject({ type: "started" });
      expect(seen.flatMap(({ type, data }) => (type === "stdout" ? [data] : [])).join("")).toBe("é\n");
      expect(seen.at(-1)).toMatchObject({ type: "exit", exit_code: 7 });
    });

    it("lets a command go on when its client is gone, and gives its output to the next client", async () => {
      await run({ command: "mkfifo gate" });
      const gone = new AbortController();
      const events = eventsOf(await start({ command: "echo one; read x < gate; echo two $x; exit 5" }, gone.signal));
      const { process } = (await events.next()).value as Event;
      expect((await events.next()).value).toEqual({ type: "stdout", data: "one\n" });
      gone.abort();
      const again = await request("GET", `commands/${process}`);
      await run({ command: "echo hello > gate" });
      const rest = await all(again);
      expect(rest.at(-2)).toEqual({ type: "stdout", data: "two hello\n" });
      expect(rest.at(-1)).toMatchObject({ type: "exit", exit_code: 5 });
      expect((await request("GET", `commands/${process}`)).status).toBe(404);
    });

    it("ends a command with its client if the client asked so", async () => {
      const gone = new AbortController();
      const events = eventsOf(await start({ command: ["sleep", "600"], end_with_client: true }, gone.signal));
      await events.next();
      gone.abort();
      const running = async () =>
        ((await platform.demand("GET", `/env-instance/${id}/commands`, undefined, ada)) as Event[]).filter(({ ended }) => ended === null);
      await expect.poll(running).toEqual([]);
    });

    it("limits the commands of an instance, and drops the ends that no client has read", async () => {
      const gone = new AbortController();
      const answers = await Promise.all([1, 2, 3, 4].map(() => start({ command: ["sleep", "600"] }, gone.signal)));
      const refused = await platform.ask("POST", `/env-instance/${id}/exec`, { command: "true", wait: true }, ada);
      expect([refused.status, refused.error?.code]).toEqual([429, "quota.exceeded"]);
      for (const answer of answers) {
        const { process } = (await eventsOf(answer).next()).value as Event;
        await platform.demand("POST", `/env-instance/${id}/commands/${process}/signal`, { signal: "SIGKILL" }, ada);
      }
      gone.abort();
      await expect
        .poll(async () => (await platform.ask("POST", `/env-instance/${id}/exec`, { command: "true", wait: true }, ada)).status)
        .toBe(200);
    });

    it("writes, reads, lists, renames and removes files", async () => {
      const bytes = randomBytes(3_000_000);
      const put = await request("PUT", `${file("a/b/data.bin")}&mkdirs=true&mode=0640`, { body: bytes });
      expect(put.status).toBe(200);
      const got = await request("GET", file("a/b/data.bin"));
      expect([got.status, got.headers.get("content-length"), got.headers.get("x-file-mode")]).toEqual([200, "3000000", "0640"]);
      expect(digest(await got.arrayBuffer())).toBe(digest(bytes));
      const part = await request("GET", file("a/b/data.bin"), { headers: { range: "bytes=10-19" } });
      expect([part.status, part.headers.get("content-range")]).toEqual([206, "bytes 10-19/3000000"]);
      expect(Buffer.from(await part.arrayBuffer())).toEqual(bytes.subarray(10, 20));
      expect((await request("GET", file("a/b/data.bin"), { headers: { range: "bytes=3000000-" } })).status).toBe(416);
      await request("PUT", `${file("a/b/data.bin")}&append=true`, { body: "end" });
      const { data } = await platform.ask("GET", `/env-instance/${id}/files/list?path=a&recursive=true`, undefined, ada);
      expect(data.files).toMatchObject([
        { path: "b", type: "directory" },
        { path: "b/data.bin", type: "file", size: 3_000_003, mode: "0640" },
      ]);
      await platform.demand("POST", `/env-instance/${id}/files/rename`, { path: "a/b/data.bin", to: "a/c" }, ada);
      const stat = await platform.demand("GET", `/env-instance/${id}/files/stat?path=a/c`, undefined, ada);
      expect(stat).toMatchObject({ type: "file", size: 3_000_003 });
      expect((await request("DELETE", file("a"))).status).toBe(409);
      expect((await request("DELETE", `${file("a")}&recursive=true`)).status).toBe(200);
      expect((await request("GET", file("a/c"))).status).toBe(404);
    });

    it("sends and receives folders as archives, and refuses an archive that leads out of its folder", async () => {
      await request("PUT", `${file("tree/x/one")}&mkdirs=true`, { body: "1" });
      const archive = await (await request("GET", "files/archive?path=tree")).arrayBuffer();
      expect((await request("PUT", "files/archive?path=copy", { body: archive })).status).toBe(200);
      expect(await run({ command: "find copy -type f -exec cat {} +" })).toMatchObject({ stdout: "1" });
      expect((await request("PUT", "files/archive?path=copy", { body: "not an archive, but long enough".repeat(40) })).status).toBe(400);
    });

    it("reports changes in a folder", async () => {
      await platform.demand("POST", `/env-instance/${id}/files/mkdir`, { path: "watched" }, ada);
      const stop = new AbortController();
      const watching = await request("GET", "files/watch?path=watched", { signal: stop.signal });
      const reader = watching.body?.pipeThrough(new TextDecoderStream()).getReader();
      expect((await reader?.read())?.value).toMatch(/event: ready/);
      await request("PUT", file("watched/new"), { body: "x" });
      expect((await reader?.read())?.value).toMatch(/"path":"/);
      stop.abort();
    });

    it("is for the owner only, and not for agents", async () => {
      const agent = await platform.token("ada", "agent");
      const calls = [
        ["POST", "exec"],
        ["GET", "commands"],
        ["GET", file("x")],
        ["PUT", file("x")],
        ["DELETE", file("x")],
        ["GET", "files/list?path=/"],
      ] as const;
      for (const [method, path] of calls) {
        const body = method === "POST" ? { body: '{"command":"true"}', headers: { "content-type": "application/json" } } : {};
        expect((await request(method, path, body, bob)).status).toBe(404);
        expect((await request(method, path, body, agent)).status).toBe(403);
        expect((await request(method, path, body, {} as Headers)).status).toBe(401);
      }
    });

    it("lets only the owner listen on a port inside, and says what is wrong with the request", async () => {
      const agent = await platform.token("ada", "agent");
      const listen = async (headers: object, query = "", upgrade = "aenv-listen-1") => {
        const url = `${platform.controlUrl}/env-instance/${id}/listen${query}`;
        const sent = httpRequest(url, { headers: { ...headers, connection: "upgrade", upgrade }, agent: false }).end();
        const [answer] = (await once(sent, "response")) as [IncomingMessage];
        answer.resume();
        return answer.statusCode;
      };
      expect(await listen(bob)).toBe(404);
      expect(await listen(agent)).toBe(403);
      expect(await listen({})).toBe(401);
      expect(await listen(ada, "?port=70000")).toBe(400);
      expect(await listen(ada, "?port=x")).toBe(400);
      expect(await listen(ada, "", "websocket")).toBe(400);
    });

    describe("with the SDK", () => {
      let env: Environment;
      beforeAll(async () => {
        const { controlUrl, dataUrl } = platform;
        env = await Environment.create("tally@1.0.0", { controlUrl, dataUrl, apiKey: ada.authorization.slice("Bearer ".length) });
      });
      afterAll(() => env?.release());

      it("runs commands, with output while they run", async () => {
        expect(await env.sandbox.exec("cat; exit 4", { stdin: "in" })).toMatchObject({
          stdout: "in",
          stderr: "",
          exitCode: 4,
          timedOut: false,
        });
        const seen: string[] = [];
        const onOutput = (text: string, channel: string) => void seen.push(`${channel}: ${text}`);
        const result = await env.sandbox.exec(["sh", "-c", "echo a; echo b >&2"], { stdin: new Uint8Array([1]), onOutput });
        expect(result).toMatchObject({ stdout: "a\n", stderr: "b\n", exitCode: 0 });
        expect(seen.sort()).toEqual(["stderr: b\n", "stdout: a\n"]);
        expect(await env.sandbox.exec("sleep 600", { timeoutMs: 100 })).toMatchObject({ timedOut: true });
        await expect(env.sandbox.exec(["no-such-program"])).rejects.toMatchObject({ code: "command.not_started" });
      });

      it("ends a command whose call is aborted", async () => {
        const stop = new AbortController();
        const running = env.sandbox.exec("echo begun; sleep 600", { signal: stop.signal, onOutput: () => stop.abort(new Error("enough")) });
        await expect(running).rejects.toThrow("enough");
        await expect.poll(async () => (await env.sandbox.commands()).filter(({ ending }) => ending === null)).toEqual([]);
      });

      it("gives a command input while it runs", async () => {
        await using process = await env.sandbox.spawn('while read line; do echo "got $line"; done; exit 9');
        const input = process.stdin.getWriter();
        const output = process.stdout.pipeThrough(new TextDecoderStream()).getReader();
        await input.write(Buffer.from("one\n"));
        expect((await output.read()).value).toBe("got one\n");
        await input.write(Buffer.from("two\n"));
        expect((await output.read()).value).toBe("got two\n");
        await input.close();
        expect(await process.exited).toMatchObject({ exitCode: 9 });
      });

      it("listens on a port inside, until it is closed, aborted, or the instance ends", async () => {
        const { controlUrl, dataUrl } = platform;
        const apiKey = ada.authorization.slice("Bearer ".length);
        await using own = await Environment.create("tally@1.0.0", { controlUrl, dataUrl, apiKey });
        const content = randomBytes(3_000_000);
        const stop = new AbortController();
        const listener = await own.sandbox.listen(0, (connection) => connection.pipe(connection), { signal: stop.signal });
        const digests = [1, 2].map(async () => {
          const socket = connect(listener.port, "127.0.0.1");
          socket.write(content);
          const hash = createHash("sha256");
          let bytes = 0;
          for await (const part of socket) {
            hash.update(part);
            bytes += part.length;
            if (bytes === content.length) break;
          }
          return hash.digest("hex");
        });
        const expected = createHash("sha256").update(content).digest("hex");
        expect(await Promise.all(digests)).toEqual([expected, expected]);
        stop.abort();
        await listener.closed;
        const other = await own.sandbox.listen(0, () => {});
        const socket = connect(other.port, "127.0.0.1").on("error", () => {});
        await once(socket, "connect");
        // Not `once` of events, which rejects on an error: the kernel resets a connection that the init had not accepted yet.
        const ended = new Promise((resolve) => socket.resume().once("close", resolve));
        await own.release();
        await Promise.all([other.closed, ended]);
      });

      it("opens a terminal, and changes its size", async () => {
        await using process = await env.sandbox.spawn("stty size; read x; stty size", { terminal: { rows: 24, cols: 80 } });
        const output = process.stdout.pipeThrough(new TextDecoderStream()).getReader();
        expect((await output.read()).value).toMatch(/^24 80/);
        process.resize({ rows: 50, cols: 132 });
        await process.stdin.getWriter().write(Buffer.from("\n"));
        let text = "";
        for (let next = await output.read(); !next.done; next = await output.read()) text += next.value;
        expect(text).toContain("50 132");
        expect(await process.exited).toMatchObject({ exitCode: 0 });
      });

      it("follows a command again that it had left, and sends it a signal", async () => {
        // Without a shell, which can miss a signal while it starts the program.
        const { id, close } = await env.sandbox.spawn(["sleep", "600"]);
        await close();
        await using again = await env.sandbox.attach(id);
        again.signal("SIGINT");
        expect(await again.exited).toMatchObject({ exitCode: null, signal: "SIGINT" });
        await expect(env.sandbox.attach(id)).rejects.toMatchObject({ code: "command.not_found" });
      });

      it("writes, reads, lists, watches and removes files", async () => {
        const { files } = env.sandbox;
        await files.write("notes/a.txt", "grün", { mode: 0o600 });
        await files.write("notes/a.txt", "!", { append: true });
        expect(await files.readText("notes/a.txt")).toBe("grün!");
        expect(Buffer.from(await files.read("notes/a.txt", { offset: 1, length: 1 })).toString()).toBe("r");
        expect(await files.stat("notes/a.txt")).toMatchObject({ type: "file", size: 6, mode: 0o600 });
        const changes = await files.watch("notes");
        await files.rename("notes/a.txt", "notes/b.txt");
        expect((await changes.next()).value).toMatchObject({ path: "a.txt" });
        await changes.return();
        await files.upload("copy", await files.download("notes"));
        expect((await files.list("copy", { recursive: true })).map(({ path }) => path)).toEqual(["b.txt"]);
        await files.mkdir("deep/er");
        await files.remove("notes", { recursive: true });
        await expect(files.readText("notes/b.txt")).rejects.toMatchObject({ code: "file.not_found" });
      });

      it("reports why a WebSocket was refused", async () => {
        const { controlUrl, dataUrl } = platform;
        const scheduler = new SchedulerClient(controlUrl, { apiKey: "wrong" });
        const sandbox = new InstanceSandbox(async () => ({ id, scheduler, control: scheduler.control }));
        await expect(sandbox.spawn("true")).rejects.toMatchObject({ code: "access.unauthenticated" });
        const local = new Environment("tally", { instanceUrl: `${dataUrl}/env-instance/${id}` });
        await expect(local.sandbox.exec("true")).rejects.toMatchObject({ code: "instance.unsupported" });
      });
    });

    it("is refused, with the reason, for instances that share a process", async () => {
      const ref = await publish(platform, projects.echo, { headers: ada, isolation: "shared" });
      const shared = await platform.create(ref, {}, ada);
      const answer = await platform.ask("POST", `/env-instance/${shared.id}/exec`, { command: "true" }, ada);
      expect([answer.status, answer.error?.code]).toEqual([501, "instance.unsupported"]);
      expect(answer.message).toMatch(/share a process/);
    });
  });
}

describeNeeding("go", "an idle instance that is a plain process", () => {
  it("is not ended while a command runs whose client has disconnected", async () => {
    await using platform = await startPlatform({ flags: { processCommands: true, idleAfter: "1s" } });
    using tree = temporaryTree();
    const ended = join(tree.path, "ended");
    const { id } = await platform.create(await publish(platform, projects.tally));
    const client = new AbortController();
    const started = await fetch(`${platform.controlUrl}/env-instance/${id}/exec`, {
      method: "POST",
      body: JSON.stringify({ command: ["node", "-e", "setTimeout(() => fs.writeFileSync(process.argv[1], ''), 4_000)", ended] }),
      headers: { "content-type": "application/json" },
      signal: client.signal,
    });
    await started.body?.getReader().read();
    client.abort();
    const status = async () => ((await platform.demand("GET", `/env-instance/${id}`)) as { status: string }).status;
    await expect.poll(status, { timeout: 30_000 }).toBe("Terminated");
    expect(existsSync(ended)).toBe(true);
  }, 60_000);

  describeNeeding("control-groups-v2", "in a control group", () => {
    it("is frozen, and continued by a command and by a call, and metrics say how long it was frozen", async () => {
      await using platform = await startPlatform({ flags: { processCommands: true, freezeAfter: "200ms" } });
      const { id } = await platform.create(await publish(platform, projects.tally));
      await untilFrozen(platform, id);
      expect(await frozenMetrics(platform)).toMatchObject({ instances: 1, seconds: 0 });
      const run = await platform.demand("POST", `/env-instance/${id}/exec`, { command: "echo here", wait: true });
      expect(run).toMatchObject({ stdout: "here\n", exit_code: 0 });
      // The time is counted after the instance was continued, which the command does not wait for.
      await expect.poll(async () => (await frozenMetrics(platform)).seconds, { timeout: 20_000 }).toBeGreaterThan(0);
      await untilFrozen(platform, id);
      expect((await fetch(`${platform.dataUrl}/env-instance/${id}/health`)).status).toBe(200);
    }, 60_000);
  });
});

describe("a server with plain processes", () => {
  it("says how to enable commands", async () => {
    await using platform = await startPlatform();
    const { id } = await platform.create(await publish(platform, projects.tally));
    const answer = await platform.ask("POST", `/env-instance/${id}/exec`, { command: "true" });
    expect(answer.status).toBe(501);
    expect(answer.message).toMatch(/--process-commands/);
  });
});

/** The events of a stream. */
async function* eventsOf(answer: Response): AsyncGenerator<Event> {
  expect(answer.status).toBe(200);
  let rest = "";
  for await (const text of (answer.body as ReadableStream<Uint8Array<ArrayBuffer>>).pipeThrough(new TextDecoderStream())) {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) yield JSON.parse(line);
  }
}

async function all(answer: Response): Promise<Event[]> {
  const events: Event[] = [];
  for await (const event of eventsOf(answer)) events.push(event);
  return events;
}

function digest(bytes: ArrayBuffer | Buffer): string {
  return createHash("sha256").update(new Uint8Array(bytes)).digest("hex");
}
