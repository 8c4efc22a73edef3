import { once } from "node:events";
import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { Environment } from "@aenv/sdk";
import { describeNeeding } from "@aenv/testing";
import { afterAll, beforeAll, expect, it } from "vitest";
import { callTool, urlOf } from "./calls.ts";
import { type Platform, projects, publish, startPlatform } from "./platform.ts";
import { frozenMetrics, untilFrozen } from "./testing/frozen.ts";

for (const runtime of ["runc", "runsc"] as const) {
  describeNeeding(runtime, `env.sandbox with the engine oci and ${runtime}`, () => {
    let platform: Platform;
    let env: Environment;
    beforeAll(async () => {
      platform = await startPlatform({ flags: { engine: "oci", runtime, freezeAfter: "500ms" } });
      const ref = await publish(platform, projects.tally);
      env = await Environment.create(ref, { controlUrl: platform.controlUrl, dataUrl: platform.dataUrl });
    }, 60_000);
    afterAll(async () => {
      await env?.release();
      await platform?.close();
    });

    it("runs commands, with input and with a terminal", async () => {
      await using process = await env.sandbox.spawn(["node", "-e", "process.stdin.pipe(process.stdout)"]);
      const input = process.stdin.getWriter();
      await input.write(Buffer.from("hello"));
      expect((await process.stdout.pipeThrough(new TextDecoderStream()).getReader().read()).value).toBe("hello");
      await input.close();
      expect(await process.exited).toMatchObject({ exitCode: 0 });
      const size = "console.log(process.stdout.getWindowSize().join())";
      await using shown = await env.sandbox.spawn(["node", "-e", size], { terminal: { rows: 11, cols: 77 } });
      expect((await shown.stdout.pipeThrough(new TextDecoderStream()).getReader().read()).value).toMatch(/^77,11/);
    });

    it("accesses files of the sandbox, and not those of this machine", async () => {
      const { files } = env.sandbox;
      await files.write("/work/a.txt", "a");
      expect(await files.readText("/work/a.txt")).toBe("a");
      await files.upload("/copy", await files.download("/work"));
      expect((await files.list("/copy")).map(({ path }) => path)).toEqual(["a.txt"]);
      await expect(files.stat(platform.home)).rejects.toMatchObject({ code: "file.not_found" });
    });

    it("reads files that a program rewrites meanwhile, and ends the read of a large one that becomes shorter", async () => {
      const { files } = env.sandbox;
      const rewrite =
        "const fs = require('node:fs'); const write = () => { for (let n = 0; n < 50; n++) fs.writeFileSync('/changing', 'x'.repeat(9)); setImmediate(write); }; write();";
      await files.write("/changing", "");
      await using _writing = await env.sandbox.spawn(["node", "-e", rewrite], { endsWithClient: true });
      await expect.poll(() => files.readText("/changing"), { timeout: 30_000 }).toBe("x".repeat(9));
      for (let count = 0; count < 200; count++) expect("x".repeat(9)).toContain(await files.readText("/changing"));

      await env.sandbox.exec(["node", "-e", "fs.writeFileSync('/large', Buffer.alloc(200 * 2 ** 20))"]);
      const { instanceId } = await env.getEnvInfo();
      const response = await fetch(`${platform.controlUrl}/env-instance/${instanceId}/files?path=/large`);
      const reader = (response.body as ReadableStream<Uint8Array>).getReader();
      await reader.read();
      await env.sandbox.exec(["node", "-e", "fs.truncateSync('/large', 1)"]);
      const rest = async () => {
        while (!(await reader.read()).done);
      };
      await expect(rest()).rejects.toThrow();
    }, 60_000);

    it("listens on a port inside, whose connections reach this process and nothing else", async () => {
      let asked = 0;
      const server = createServer((_, response) => response.end(`answer ${++asked}`)).listen(0, "127.0.0.1");
      await once(server, "listening");
      const { port: here } = server.address() as AddressInfo;
      const listener = await env.sandbox.listen(0, (connection) => {
        const socket = connect(here, "127.0.0.1").on("error", () => {});
        connection.pipe(socket).pipe(connection);
      });
      const fetched = (port: number) =>
        env.sandbox.exec([
          "node",
          "-e",
          `Promise.all([1, 2, 3].map(async () => (await fetch("http://127.0.0.1:${port}/")).text())).then((all) => console.log(all.sort().join()), (error) => console.log(error.cause?.code))`,
        ]);
      expect(await fetched(listener.port)).toMatchObject({ stdout: "answer 1,answer 2,answer 3\n" });
      // The address of this process is of no use inside.
      expect(await fetched(here)).toMatchObject({ stdout: "ECONNREFUSED\n" });
      await expect(env.sandbox.listen(listener.port, () => {})).rejects.toMatchObject({
        code: "request.invalid",
        message: expect.stringContaining("in use"),
      });
      await listener.close();
      await expect.poll(async () => (await fetched(listener.port)).stdout, { timeout: 20_000 }).toBe("ECONNREFUSED\n");
      const many = await Promise.all(Array.from({ length: 8 }, () => env.sandbox.listen(0, () => {})));
      await expect(env.sandbox.listen(0, () => {})).rejects.toMatchObject({ code: "quota.exceeded" });
      await Promise.all(many.map((one) => one.close()));
      server.close();
    }, 60_000);

    it("is frozen while it is idle, and continued by a command and by a call of a tool, and metrics say what that saved", async () => {
      const { instanceId: id } = await env.getEnvInfo();
      // A process that a command has left behind is no use of the instance.
      const busy = "require('node:child_process').spawn('node', ['-e', 'for (;;);'], { detached: true, stdio: 'ignore' }).unref()";
      await env.sandbox.exec(["node", "-e", busy]);
      await untilFrozen(platform, id);
      expect(await frozenMetrics(platform)).toMatchObject({ instances: 1 });
      expect(await env.sandbox.exec(["node", "-p", "1 + 1"])).toMatchObject({ stdout: "2\n" });
      await expect.poll(async () => (await frozenMetrics(platform)).savedCpuSeconds).toBeGreaterThan(0);
      await untilFrozen(platform, id);
      const before = await frozenMetrics(platform);
      expect(await callTool(urlOf(platform, id), "add", { n: 2 })).toMatchObject({ status: 200, isError: false });
      await expect.poll(async () => (await frozenMetrics(platform)).seconds).toBeGreaterThan(before.seconds);
    }, 60_000);

    it("is not frozen under a command whose client has disconnected", async () => {
      const { instanceId } = await env.getEnvInfo();
      const client = new AbortController();
      const started = await fetch(`${platform.controlUrl}/env-instance/${instanceId}/exec`, {
        method: "POST",
        body: JSON.stringify({ command: ["node", "-e", "setTimeout(() => fs.writeFileSync('/ended', 'yes'), 4_000)"] }),
        headers: { "content-type": "application/json" },
        signal: client.signal,
      });
      await started.body?.getReader().read();
      client.abort();
      await untilFrozen(platform, instanceId);
      expect(await env.sandbox.files.readText("/ended")).toBe("yes");
    }, 60_000);
  });
}
