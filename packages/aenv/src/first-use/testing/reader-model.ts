import { type ScriptedOpenAi, scriptedOpenAi } from "@aenv/testing";

/**
 * A model for the commands of the docs. It plays the built-in environment `echo`, the guessing game of the template `stateful`, and in
 * tau2 a user who ends the conversation.
 */
export function readersModel(): Promise<ScriptedOpenAi> {
  return scriptedOpenAi(
    ({ model, turn, tools, messages }) => {
      if (model.startsWith("gpt-4.1")) return "###STOP###";
      const isOver = messages.at(-1)?.text.includes("found") === true;
      if (tools.some(({ name }) => name === "guess")) {
        return isOver || turn > 20 ? "I am done." : { toolCalls: [{ name: "guess", arguments: { n: turn + 1 } }] };
      }
      return turn === 0 ? { toolCalls: [{ name: "echo", arguments: { text: "hello" } }] } : "I am done.";
    },
    { tokens: { engine: "vllm" }, keepsRequests: false },
  );
}
