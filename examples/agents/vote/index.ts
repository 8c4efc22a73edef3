import { agentEnvironment, customAgent } from "@aenv/kit";

const VOTES = 5;

/** Majority vote: the model answers several times, with a seed of its own each time, and the answer that most agree on counts. */
export default agentEnvironment({
  description: "Asks a model several times and gives the answer of most.",
  agent: customAgent(async ({ text, context: { model } }) => {
    const system = "Think, then give the answer alone in the last line, in as few words as possible.";
    const messages = [
      { role: "system" as const, content: system },
      { role: "user" as const, content: text },
    ];
    const answers = await Promise.all(
      Array.from({ length: VOTES }, async (_, seed) => {
        const { message } = await model("main").complete({ messages, seed, temperature: 1 });
        return String(message.content).trim().split("\n").at(-1)?.trim().toLowerCase() ?? "";
      }),
    );
    const votes = Map.groupBy(answers, (answer) => answer);
    // The sort is stable: of two answers with as many votes, the first one wins.
    const [winner] = [...votes.values()].sort((one, other) => other.length - one.length);
    return { answer: `${winner?.[0]} (${winner?.length} of ${VOTES} votes)` };
  }),
});
