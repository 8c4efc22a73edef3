import type { Participant } from "../conversation/orchestrator.ts";
import type { Message, ParticipantMessage } from "../core/messages/messages.ts";
import type { JsonSchema } from "../core/tools/parameters.ts";
import { type ChatOptions, chat, flipRoles, type ModelSettings } from "./chat.ts";

export interface UserSimulatorOptions {
  readonly settings: ModelSettings;
  readonly prompt: string;
  /** The user's own tools. */
  readonly tools: readonly JsonSchema[];
  readonly pause?: ChatOptions["pause"];
}

/** A user played by a model. */
export class UserSimulator implements Participant {
  readonly #options: UserSimulatorOptions;

  constructor(options: UserSimulatorOptions) {
    this.#options = options;
  }

  async reply(history: readonly Message[], signal?: AbortSignal): Promise<ParticipantMessage> {
    const { settings, prompt, tools, pause } = this.#options;
    const messages: Message[] = [{ role: "system", content: prompt }, ...flipRoles(history)];
    const { content, tool_calls } = await chat(settings, messages, { tools, signal, ...(pause === undefined ? {} : { pause }) });
    return { role: "user", content, tool_calls: tool_calls?.map((call) => ({ ...call, requestor: "user" })) ?? null };
  }
}
