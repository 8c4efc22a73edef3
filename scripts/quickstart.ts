import { styleText } from "node:util";
import echo from "@aenv/echo";
import { serve } from "@aenv/kit";
import { Environment, SchedulerClient } from "@aenv/sdk";

const started = performance.now();

title("An environment, from start to end");

// Any free port: the usual 8081 may be taken.
await using sandbox = await serve(echo, { name: "echo", version: "1.0.0", port: 0, first: null });
step("Served", "environments/echo", `at ${sandbox.url}: tools for agents over MCP, the rest for trainers over HTTP`);

const scheduler = new SchedulerClient(sandbox.url);
const { id } = await scheduler.createInstance({ envName: "echo@1.0.0", task: "greet" });
step("Created", id, "an instance with a state of its own; this process could hold thousands");

const env = new Environment("echo@1.0.0", { instanceUrl: `${sandbox.url}/env-instance/${id}` });
const [task] = await env.tasks();
step("Task", `"${task?.instruction}"`, "one of the environment's tasks, and what an agent is told");

const tools = await env.listTools();
step("Tools", tools.map((tool) => tool.name.replace(`${env.name}/`, "")).join(", "), "what the agent may call");

const answer = await env.callTool("echo", { text: "hello" });
step("Called", `echo({ text: "hello" }) -> ${answer.text}`, "a tool, over MCP");

const transcript = await env.callFunction("transcript");
step("Called", `transcript() -> ${JSON.stringify(transcript)}`, "a function, which agents cannot reach");

const { reward, components } = await env.score();
step("Reward", `${reward} = 0.8 x said_it (${components.said_it}) + 0.2 x brief (${components.brief})`, "computed by the environment");

const health = await env.checkHealth();
step("Health", JSON.stringify(health.data), "what a probe is told");

await env.release();
await scheduler.deleteInstance(id);
step("Released", id, `${(await scheduler.listInstances()).length} instances left`);

title(`Done in ${((performance.now() - started) / 1_000).toFixed(1)} s. What to try next`);
next("Read the environment you just used", "environments/echo/src/index.ts");
next("Serve it, edit it, and see each change live", "npx aenvironment run --work-dir environments/echo");
next("Create one of your own, beside this clone", "npx aenvironment init my-env --work-dir ..");
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
