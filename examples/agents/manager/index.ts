import { agentEnvironment, chatAgent, tool } from "@aenv/kit";
import * as z from "zod";

/** Each specialist is a child: an instance of its own, which remembers what it was asked in this episode. */
const ask = (name: string, does: string) =>
  tool({
    name: `ask_${name}`,
    description: `Asks the ${name}, who ${does}.`,
    input: z.object({ request: z.string() }),
    run: async ({ request }, { children }) => {
      const { text, isError } = await children.get(name).callTool("chat", { message: request });
      if (isError) throw new Error(`the ${name} could not answer: ${text}`);
      return text;
    },
  });

/** A manager with specialists: the model decides whom it asks what, and writes the answer. */
export default agentEnvironment({
  description: "Divides the work between two specialists.",
  tools: [ask("researcher", "finds facts"), ask("writer", "writes short texts")],
  agent: chatAgent({
    model: "main",
    instructions: "You are a manager. Let your specialists do the work, check what they give you, and answer with the result.",
    maxTurns: 10,
  }),
});
