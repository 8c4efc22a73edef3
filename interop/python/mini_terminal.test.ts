import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describeNeeding, pythonPath } from "@aenv/testing";
import { type Platform, publish, startPlatform } from "aenvironment/platform-tests";
import { afterAll, beforeAll, expect, it } from "vitest";
import { freeLoopback, ORIGINAL_PORT } from "./original.ts";

const project = fileURLToPath(new URL("../../environments/mini-terminal", import.meta.url));

describeNeeding("python", "the original's interactive example for mini-terminal", () => {
  // Its clients only support the ports 8080 and 8081; all of 127/8 is loopback, so each test gets an address of its own.
  const host = freeLoopback();
  let platform: Platform;

  beforeAll(async () => {
    platform = await startPlatform({ flags: { host, controlPort: 8080, dataPort: ORIGINAL_PORT } });
    expect(await publish(platform, project)).toBe("mini-terminal@1.0.1");
  }, 60_000);
  afterAll(() => platform?.close());

  /** Types the lines into the example, and returns the tools and the result of each line. */
  async function play(lines: readonly string[]) {
    const env = { ...process.env, PYTHONDONTWRITEBYTECODE: "1", PYTHONWARNINGS: "ignore", AENV_SYSTEM_URL: `http://${host}` };
    const example = spawn(pythonPath, [join(import.meta.dirname, "mini_terminal.py")], { env, timeout: 90_000 });
    const said: string[] = [];
    example.stdout.setEncoding("utf8").on("data", (text: string) => said.push(text));
    const errors: string[] = [];
    example.stderr.setEncoding("utf8").on("data", (text: string) => errors.push(text));
    example.stdin.end(`${[...lines, "exit"].join("\n")}\n`);
    const [code] = await once(example, "close");
    if (code !== 0) throw new Error(`the example ended with ${code}:\n${errors.join("")}`);
    const [tools, ...results] = said
      .join("")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    return { tools, results: results.map(({ is_error, content }) => ({ is_error, ...JSON.parse(content[0].text) })) };
  }

  it("runs each line in one session, and gets the fields that it knows with real exit codes", { timeout: 120_000 }, async () => {
    const { tools, results } = await play([
      "echo helloworld",
      "cd /; word=kept",
      "echo $word $PWD; ls nosuchfile",
      "echo before; sleep 60",
      "(exit 3)",
      "sh -c 'exit 4'; exit 5",
      "echo alive",
    ]);
    expect(tools[0]).toMatchObject({ name: "mini-terminal@1.0.1/execute_command", inputSchema: { required: ["command"] } });
    const result = (text: unknown, hasFinished: boolean, returncode: number) =>
      expect.objectContaining({ is_error: false, output: [text, hasFinished], returncode });
    expect(results).toEqual([
      result("helloworld\n", true, 0),
      result("", true, 0),
      result(expect.stringMatching(/^kept \/\nls: .*nosuchfile.*\n$/), true, 2),
      result("before\n", false, 130),
      result("", true, 3),
      result("", true, 5),
      result("alive\n", true, 0),
    ]);
    expect(await platform.demand("GET", "/env-instance/*/list?status=Running")).toEqual([]);
  });
});
