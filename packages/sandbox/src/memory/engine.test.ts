import type { RequestListener } from "node:http";
import { afterEach, expect, it } from "vitest";
import { describeEngine } from "../conformance.ts";
import type { SandboxSpec } from "../engine/engine.ts";
import { MemoryEngine } from "./engine.ts";
import type { MemorySandbox } from "./sandbox.ts";

/** The behaviour of fixtures/program.js, without a process. */
function program(spec: SandboxSpec, self: MemorySandbox): RequestListener {
  const [behaviour] = spec.command;
  if (behaviour === "exit") throw new Error("nothing to serve here");
  if (behaviour === "missing") throw new Error("no such program");
  if (behaviour === "silent" || behaviour === "deaf") return () => undefined;
  return (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? "/", "http://sandbox");
    const line = searchParams.get("line") ?? "";
    const answers: Record<string, () => unknown> = {
      "/health": () => ({ success: true }),
      "/environment": () => ({ variables: spec.variables }),
      "/print": () => self.print(line),
      "/file": () => (request.method === "POST" ? void self.files.set("file", line) : { line: self.files.get("file") ?? null }),
      "/exit": () => {
        self.print(line);
        response.on("finish", () => self.exit(`exit code ${searchParams.get("code")}: ${line}`));
      },
    };
    response.end(JSON.stringify(answers[pathname]?.() ?? null));
  };
}

describeEngine("memory", {
  open: () => new MemoryEngine({ start: program, can: { snapshots: ["files"] } }),
  command: (behaviour) => [behaviour],
  skip: {
    "destroy ends children and grandchildren": "its sandboxes are not processes",
    "destroy ends a child that forked twice, left its session and cleared its environment, where the engine finds strays":
      "its sandboxes are not processes",
    "sandboxes outlive their engine, and the next engine finds them": "its sandboxes live in its own memory",
    "connect reaches a port on which a process of the sandbox listens": "its sandboxes have no ports",
    "connect refuses a port on which no process of the sandbox listens, even if another process does": "its sandboxes have no ports",
  },
});

const engines: MemoryEngine[] = [];
afterEach(async () => {
  for (const engine of engines.splice(0)) await engine.close();
});

it("crashes a sandbox on request, with the given reason", async () => {
  const engine = new MemoryEngine({ start: program });
  engines.push(engine);
  const spec = { id: "a", command: ["serve"], variables: {}, labels: {}, startTimeoutMs: 1_000 };
  const sandbox = await engine.create(spec, new AbortController().signal);
  await engine.crash("a", "out of disk");
  expect((await sandbox.exited).reason).toBe("out of disk");
  expect(await engine.list()).toEqual([]);
  await expect(engine.crash("b", "no such sandbox")).rejects.toMatchObject({ code: "sandbox.lost" });
});
