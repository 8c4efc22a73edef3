import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify, styleText } from "node:util";
import echo from "@aenv/echo";
import { serve } from "@aenv/kit";
import { Environment, SchedulerClient } from "@aenv/sdk";

const started = performance.now();

title("One environment, from start to end");

// A free port: the default 8081 may be in use.
await using sandbox = await serve(echo, { name: "echo", version: "1.0.0", port: 0, first: null });
step("Served", "environments/echo", `at ${sandbox.url}: the agent API (MCP) and the trainer API (HTTP)`);

const scheduler = new SchedulerClient(sandbox.url);
const { id } = await scheduler.createInstance({ envName: "echo@1.0.0", task: "greet" });
step("Created", id, "an instance with its own state; one process can hold thousands");

const env = new Environment("echo@1.0.0", { instanceUrl: `${sandbox.url}/env-instance/${id}` });
const [task] = await env.tasks();
step("Task", `"${task?.instruction}"`, "one of the environment's tasks, with its instruction for the agent");

const tools = await env.listTools();
step("Tools", tools.map((tool) => tool.name.replace(`${env.name}/`, "")).join(", "), "the tools that an agent may call");

const answer = await env.callTool("echo", { text: "hello" });
step("Called", `echo({ text: "hello" }) -> ${answer.text}`, "a tool, over the agent API");

const transcript = await env.callFunction("transcript");
step("Called", `transcript() -> ${JSON.stringify(transcript)}`, "a function, over the trainer API; agents cannot call it");

const { reward, components } = await env.score();
step("Reward", `${reward} = 0.8 x said_it (${components.said_it}) + 0.2 x brief (${components.brief})`, "computed by the environment");

const health = await env.checkHealth();
step("Health", JSON.stringify(health.data), "the answer to a health check");

await env.release();
await scheduler.deleteInstance(id);
step("Released", id, `${(await scheduler.listInstances()).length} instances left`);

title("An agent, scored on every task: aenv rollout echo");

const { episodes, scored, reward: mean } = await rollout("echo");
step(
  "Played",
  `${episodes} episodes, ${scored} scored`,
  "each on an instance of a server inside of the command, with the environment's own solution",
);
step("Scored", `mean reward ${mean.mean}`, "with --agent openai --model NAME, a model plays instead");

title(`Done in ${((performance.now() - started) / 1_000).toFixed(1)} s. Next steps`);
next("Read the environment you just used", "environments/echo/src/index.ts");
next("Serve it; every change is reloaded", "npx aenvironment run --work-dir environments/echo");
next("Play and score every task; the run is kept in the folder runs", "npx aenvironment rollout echo");
next("Create your own environment, next to this clone", "npx aenvironment init my-env --work-dir ..");
next("Write an environment, step by step", "docs/guides/write-an-environment.md");
console.log();

/** Runs the command, and returns the numbers that it prints. The run itself is not kept. */
async function rollout(environment: string): Promise<{ episodes: number; scored: number; reward: { mean: number } }> {
  const runs = mkdtempSync(join(tmpdir(), "aenv-quickstart-"));
  try {
    const command = fileURLToPath(new URL("../packages/aenv/bin/aenv.js", import.meta.url));
    const argv = [command, "rollout", environment, "--json", "--runs", runs];
    return JSON.parse((await promisify(execFile)(process.execPath, argv)).stdout);
  } finally {
    rmSync(runs, { recursive: true });
  }
}

function title(text: string): void {
  console.log(`\n${styleText("bold", text)}\n`);
}

function step(did: string, what: string, note: string): void {
  console.log(`  ${styleText("green", "✓")} ${did.padEnd(9)} ${what}\n    ${" ".repeat(9)} ${styleText("dim", note)}`);
}

function next(what: string, how: string): void {
  console.log(`  ${what}\n    ${styleText("cyan", how)}`);
}
