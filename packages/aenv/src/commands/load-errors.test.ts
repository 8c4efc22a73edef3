import { describe, expect, it } from "vitest";
import { installedTree } from "../testing/cli.ts";
import { run } from "../testing/command.ts";

const head = 'import { registerTool } from "aenvironment";\nregisterTool({ name: "ask" }, () => 1);\n';
const forever = "await new Promise(() => {});\n";

function project(source: string) {
  return installedTree({ "config.json": { name: "my-env", version: "1.0.0" }, "src/index.ts": source });
}

// Each command runs in a separate process: the test is whether that ends by itself.
describe("code that does not finish loading", { timeout: 60_000 }, () => {
  const cases: [what: string, source: string, place: string, message: string][] = [
    [
      "an await that only a timer keeps company",
      `${head}setInterval(() => {}, 1_000);\n${forever}`,
      "4:1",
      "has not finished loading after 1s",
    ],
    ["an endless loop", `${head}for (;;) {}\n`, "1:1", "has not finished loading after 1s"],
    ["an await that nothing can settle", `${head}${forever}`, "3:1", "never settles"],
  ];
  for (const [what, source, place, message] of cases) {
    it.each(["build", "run"])(`ends %s with 1 and the file, for ${what}`, async (command) => {
      using tree = project(source);
      const argv = command === "run" ? ["run", "--port", "0"] : [command];
      // A promise that cannot settle is detected without a timeout.
      const limit = message.includes("1s") ? ["--load-timeout", "1s"] : [];
      const { code, stderr } = await run([...argv, ...limit], { cwd: tree.path });
      expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining(`✖ src/index.ts:${place} `) });
      expect(stderr).toContain(message);
      expect(stderr).toContain("setup");
      expect(stderr).not.toContain("Warning");
    });
  }

  it("fails push before anything is sent", async () => {
    using tree = project(`${head}setInterval(() => {}, 1_000);\n${forever}`);
    const { code, stderr } = await run(["push", "--load-timeout", "1s", "--system-url", "http://127.0.0.1:9"], { cwd: tree.path });
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining("✖ src/index.ts:4:1 ") });
  });

  it("names the file that waits, not the one that imports it", async () => {
    using tree = project(`import "./slow.ts";\n${head}`);
    tree.write({ "src/slow.ts": `\nsetInterval(() => {}, 1_000);\n${forever}` });
    const { stderr } = await run(["build", "--load-timeout", "1s"], { cwd: tree.path });
    expect(stderr).toContain("✖ src/slow.ts:3:1 ");
  });
});

describe("build", { timeout: 60_000 }, () => {
  const good: [what: string, source: string][] = [
    ["a top-level await that settles", `import { readFile } from "node:fs/promises";\n${head}await readFile(new URL(import.meta.url));\n`],
    ["timers that never end", `${head}setInterval(() => {}, 1_000);\n`],
    [
      "a child process that keeps the output open",
      `import { spawn } from "node:child_process";\n${head}const child = spawn(process.execPath, ["-e", "process.stdin.resume()"], { stdio: ["pipe", "inherit", "inherit"] });\nchild.unref();\n`,
    ],
  ];
  it.each(good)("works with %s", async (_, source) => {
    using tree = project(source);
    const { code, stdout } = await run(["build", "--json"], { cwd: tree.path });
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ tools: [{ name: "ask" }] });
  });
});
