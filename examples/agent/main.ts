import { serve } from "@aenv/kit";
import { Environment } from "@aenv/sdk";
import { type Message, type Model, play } from "./agent.ts";
import { game } from "./game.ts";

const SEED = 7;

async function main(model: Model): Promise<void> {
  const served = await serve(game, { name: "number-game", version: "1.0.0", port: 0 });
  try {
    await Environment.use("number-game@1.0.0", { instanceUrl: served.url }, (env) => playEpisode(env, model));
  } finally {
    await served.close();
  }
}

/** The trainer: chooses a task, begins an episode, runs the agent, requests the reward. */
async function playEpisode(env: Environment, model: Model): Promise<void> {
  const [task] = await env.tasks({ split: "train" });
  if (task?.instruction === undefined) throw new Error("the game has no task with an instruction");
  await env.reset({ task: task.id, seed: SEED });
  for (const message of await play(env, task.instruction, model)) print(message);
  const { reward, components } = await env.score();
  console.log(`\nreward ${reward.toFixed(2)}:`, components);
}

function print(message: Message): void {
  const label = { user: "task ", assistant: "agent", tool: "game " }[message.role];
  if (message.content) console.log(`${label} ${message.content}`);
  if (message.role !== "assistant") return;
  for (const call of message.tool_calls ?? []) console.log(`${label} ${call.function.name} ${call.function.arguments}`);
}

const { OPENAI_BASE_URL: baseUrl = "https://api.openai.com/v1", OPENAI_API_KEY: apiKey, OPENAI_MODEL: name } = process.env;
if (!apiKey || !name) {
  console.error("Set OPENAI_API_KEY and OPENAI_MODEL, and OPENAI_BASE_URL for a server other than OpenAI's.");
  process.exitCode = 1;
} else {
  await main({ baseUrl, apiKey, name });
}
