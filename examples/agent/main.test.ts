import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { type Script, scriptedOpenAi } from "@aenv/testing";
import { describe, expect, it } from "vitest";

const main = fileURLToPath(new URL("main.ts", import.meta.url));

interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs the example as a user would, with a scripted model instead of a real one. */
async function run(script: Script): Promise<Ended & { readonly tools: unknown }> {
  await using model = await scriptedOpenAi(script);
  const ended = await start({ OPENAI_BASE_URL: model.baseUrl, OPENAI_API_KEY: "key", OPENAI_MODEL: "scripted" });
  return { ...ended, tools: model.requests[0]?.tools };
}

function start(variables: Record<string, string>): Promise<Ended> {
  const { OPENAI_BASE_URL: _url, OPENAI_API_KEY: _key, OPENAI_MODEL: _model, ...inherited } = process.env;
  return new Promise((resolve) => {
    const child = execFile(process.execPath, [main], { env: { ...inherited, ...variables, NO_COLOR: "1" } }, (_error, stdout, stderr) => {
      resolve({ code: child.exitCode ?? -1, stdout, stderr });
    });
  });
}

const guess = (number: unknown) => ({ toolCalls: [{ name: "guess", arguments: { number } }] });

describe("the agent example", () => {
  it("plays an episode and prints the transcript and the reward", async () => {
    const { code, stdout, tools } = await run([guess(5), guess(8), "The number is 8."]);
    expect(stdout).toBe(
      [
        "task  I think of a whole number from 1 to 10. Find it in at most 4 guesses, then say it.",
        'agent guess {"number":5}',
        "game  the number is higher; guesses left: 3",
        'agent guess {"number":8}',
        "game  8 is right",
        "agent The number is 8.",
        "",
        "reward 0.90: { found: 1, thrift: 0.5 }",
        "",
      ].join("\n"),
    );
    expect(code).toBe(0);
    expect(tools).toMatchObject([{ name: "guess", parameters: { type: "object", required: ["number"] } }]);
  });

  it("gives no reward to an agent that does not find the number, and sends it the errors of its calls", async () => {
    const { stdout } = await run([guess("five"), guess(1), guess(2), guess(3), guess(4), guess(5), "I give up."]);
    expect(stdout).toMatch(/game {2}Error: .*number/);
    expect(stdout).toContain("game  Error: there are no guesses left");
    expect(stdout).toContain("reward 0.00: { found: 0, thrift: 0 }");
  });

  it("fails with the model's own message when the model refuses", async () => {
    const { code, stdout, stderr } = await run([{ status: 400, message: "no credit left" }]);
    expect(code).toBe(1);
    expect(stdout).toBe("");
    expect(stderr).toContain("the model answered with status 400");
    expect(stderr).toContain("no credit left");
  });

  it("names the variables to set when none is set", async () => {
    expect(await start({})).toEqual({ code: 1, stdout: "", stderr: expect.stringContaining("Set OPENAI_API_KEY and OPENAI_MODEL") });
  });
});
