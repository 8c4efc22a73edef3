import { type ChatMessage, PlatformError, textOf } from "@aenv/contract";
import type { CompletionRequest, ModelHandle } from "../../models/model.ts";

export interface ScriptedModel extends ModelHandle {
  readonly requests: readonly CompletionRequest[];
}

/** A model that answers with these texts, or with what a function makes of the conversation. */
export function scriptedModel(script: readonly string[] | ((messages: readonly ChatMessage[]) => string)): ScriptedModel {
  const requests: CompletionRequest[] = [];
  return {
    name: "scripted",
    requests,
    complete: async (request) => {
      request.signal?.throwIfAborted();
      requests.push(request);
      const content = typeof script === "function" ? script(request.messages) : script[requests.length - 1];
      if (content === undefined) throw new PlatformError("model.failed", "the script is over");
      return { message: { role: "assistant", content }, finishReason: "stop", usage: { promptTokens: 1, completionTokens: 1 } };
    },
  };
}

/** The key that a judge's instructions ask for. */
export function keyIn(messages: readonly ChatMessage[]): string {
  return /"key": "([0-9a-f]+)"/.exec(messages[0] === undefined ? "" : textOf(messages[0]))?.[1] ?? "";
}

/** A verdict in the form that the judge's instructions ask for. */
export function verdictFor(messages: readonly ChatMessage[], fields: object): string {
  return JSON.stringify({ key: keyIn(messages), reason: "because", verdict: "pass", ...fields });
}
