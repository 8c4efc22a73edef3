import { styleText } from "node:util";
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

title(`Done in ${((performance.now() - started) / 1_000).toFixed(1)} s. Next steps`);
next("Read the environment you just used", "environments/echo/src/index.ts");
next("Serve it; every change is reloaded", "npx aenvironment run --work-dir environments/echo");
next("Create your own environment, next to this clone", "npx aenvironment init my-env --work-dir ..");
next("Write an environment, step by step", "docs/guides/write-an-environment.md");
console.log();

function title(text: string): void {
  console.log(`\n${styleText("bold", text)}\n`);
}

function step(did: string, what: string, note: string): void {
  console.log(`  ${styleText("green", "✓")} ${did.padEnd(9)} ${what}\n    ${" ".repeat(9)} ${styleText("dim", note)}`);
}

function next(what: string, how: string): void {
  console.log(`  ${what}\n    ${styleText("cyan", how)}`);
}
