import { agentEnvironment, customAgent } from "@aenv/kit";

/** The agent that is tested. It adds two numbers, and is wrong for one first number from 0 to 9, which its seed decides. */
export default agentEnvironment({
  description: "An agent that adds numbers, with a fault.",
  agent: customAgent(({ text, context: { seed } }) => {
    const [first, second] = (text.match(/\d+/g) ?? []).map(Number);
    if (first === undefined || second === undefined) return "Give me two numbers.";
    return String(first + second + (first === seed % 10 ? 1 : 0));
  }),
});
