import { agentEnvironment, type Part } from "@aenv/kit";

/** Each step has a name. What it writes is an artifact of this name, and is given to the steps that need it. */
const steps = [
  { name: "facts", needs: ["request"], instructions: "List the facts that a text about this needs." },
  { name: "draft", needs: ["request", "facts"], instructions: "Write the text, with these facts only." },
  { name: "final", needs: ["draft"], instructions: "Make the draft shorter and clearer. Reply with the text alone." },
] as const;

/** A pipeline: facts, a draft, a final text. Each step sees only the outputs that it names. */
export default agentEnvironment({
  description: "Writes a text in three steps with named outputs.",
  agent: {
    begin: () => ({ outputs: {} as Record<string, string> }),
    async *turn(input, memory, { model }) {
      memory.outputs = { request: textOf(input) };
      for (const { name, needs, instructions } of steps) {
        const given = needs.map((need) => `<${need}>\n${memory.outputs[need]}\n</${need}>`).join("\n");
        const { message } = await model("main").complete({
          messages: [
            { role: "system", content: instructions },
            { role: "user", content: given },
          ],
        });
        const output = String(message.content);
        memory.outputs[name] = output;
        yield { kind: "artifact", artifact: { name, parts: [{ text: output }] } };
      }
      yield { kind: "answer", parts: [{ text: memory.outputs.final ?? "" }] };
    },
  },
});

function textOf(parts: readonly Part[]): string {
  return parts.map((part) => ("text" in part ? part.text : "")).join("");
}
