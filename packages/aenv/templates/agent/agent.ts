import { pathToFileURL } from "node:url";
import { Environment } from "aenvironment";
import { type ChatToolCall, chatTools } from "aenvironment/adapters";

interface Message {
  readonly role: string;
  readonly content?: string | null;
  readonly tool_calls?: readonly ChatToolCall[];
  readonly tool_call_id?: string;
}

/** One request to a model. Any server with OpenAI's chat completions API works. */
export type Model = (messages: readonly Message[], tools: readonly unknown[]) => Promise<Message>;

/** Lets the model play one task, and returns the messages and the reward. */
export async function play(env: Environment, model: Model, task: string, maxTurns = 20) {
  const { tools, run } = await chatTools(env);
  const instruction = (await env.tasks()).find((each) => each.id === task)?.instruction ?? task;
  await env.reset({ task });
  const messages: Message[] = [{ role: "user", content: instruction }];
  for (let turn = 0; turn < maxTurns; turn++) {
    const answer = await model(messages, tools);
    messages.push(answer);
    if (answer.tool_calls === undefined || answer.tool_calls.length === 0) break;
    for (const call of answer.tool_calls) messages.push(await run(call));
  }
  return { messages, ...(await env.score()) };
}

/** The model of the server that the variables name. */
export async function openAiModel(messages: readonly Message[], tools: readonly unknown[]): Promise<Message> {
  const { OPENAI_BASE_URL = "https://api.openai.com/v1", OPENAI_API_KEY = "", OPENAI_MODEL = "gpt-5-mini" } = process.env;
  const response = await fetch(`${OPENAI_BASE_URL}/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${OPENAI_API_KEY}` },
    body: JSON.stringify({ model: OPENAI_MODEL, messages, tools }),
  });
  if (!response.ok) throw new Error(`the model's server answered ${response.status}: ${await response.text()}`);
  const { choices } = (await response.json()) as { choices: [{ message: Message }] };
  return choices[0].message;
}

// node agent.ts [task]: plays against the environment that `npx aenvironment run` serves.
if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  if (process.env.OPENAI_API_KEY === undefined && process.env.OPENAI_BASE_URL === undefined) {
    console.error("Set OPENAI_API_KEY, or OPENAI_BASE_URL for your own server, and optionally OPENAI_MODEL.");
    process.exit(2);
  }
  const env = new Environment("{{name}}", { instanceUrl: process.env.AENV_URL ?? "http://127.0.0.1:8081" });
  try {
    const { messages, reward, components } = await play(env, openAiModel, process.argv[2] ?? "easy");
    for (const { role, content, tool_calls } of messages) console.log(`${role}:`, content || JSON.stringify(tool_calls));
    console.log("reward:", reward, components);
  } finally {
    await env.release();
  }
}
