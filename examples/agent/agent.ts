import type { ToolSource } from "@aenv/sdk";
import { type ChatToolCall, type ChatToolMessage, chatTools } from "@aenv/sdk/adapters";

/** A model behind an OpenAI-compatible API. */
export interface Model {
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly name: string;
}

export type Message = { role: "user"; content: string } | AssistantMessage | ChatToolMessage;

interface AssistantMessage {
  role: "assistant";
  content: string | null;
  tool_calls?: (ChatToolCall & { readonly function: { readonly name: string; readonly arguments: string } })[];
}

const MAX_TURNS = 20;

/** The whole agent: calls the model, runs the tools that it requests and sends it their results, until it requests no more. */
export async function play(env: ToolSource, instruction: string, model: Model): Promise<Message[]> {
  const { tools, run } = await chatTools(env);
  const messages: Message[] = [{ role: "user", content: instruction }];
  for (let turn = 0; turn < MAX_TURNS; turn++) {
    const message = await ask(model, { model: model.name, messages, tools });
    messages.push(message);
    if (message.tool_calls === undefined || message.tool_calls.length === 0) break;
    for (const call of message.tool_calls) messages.push(await run(call));
  }
  return messages;
}

async function ask({ baseUrl, apiKey }: Model, body: object): Promise<AssistantMessage> {
  const response = await fetch(`${baseUrl}/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`the model answered with status ${response.status}: ${await response.text()}`);
  const { choices } = (await response.json()) as { choices: { message: AssistantMessage }[] };
  const message = choices[0]?.message;
  if (message === undefined) throw new Error("the model's answer holds no message");
  return message;
}
