import { agentEnvironment, customAgent } from "@aenv/kit";

/** A model with one skill. Its memory is what was said before, so it can be asked to do better. */
export default agentEnvironment({
  description: "A model with one skill, which its variable SKILL names.",
  agent: customAgent<string[]>(async ({ text, memory = [], context: { model, variables } }) => {
    const system = `You are a specialist in ${variables.SKILL ?? "nothing"}. Do what you are asked, and no more.`;
    const said = [...memory, text];
    const { message } = await model("main").complete({
      messages: [
        { role: "system", content: system },
        ...said.map((content, at) => ({ role: at % 2 === 0 ? "user" : "assistant", content }) as const),
      ],
    });
    return { answer: String(message.content), memory: [...said, String(message.content)] };
  }),
});
