import { agentEnvironment } from "aenvironment/kit";

export default agentEnvironment({
  description: "Greets, and counts its greetings.",
  agent: {
    begin: () => ({ greetings: 0 }),
    async *turn(input, memory: { greetings: number }) {
      memory.greetings++;
      yield {
        kind: "answer",
        parts: [{ text: `Greeting ${memory.greetings}, you said: ${input.map((part) => ("text" in part ? part.text : "")).join("")}` }],
      };
    },
  },
});
