import { agentEnvironment, customAgent, modelJudge } from "@aenv/kit";

const ROUNDS = 2;
const SIDES = ["yes", "no"] as const;

/** A debate: two sides argue in turns, each sees what was said, and a judge decides which side has argued better. */
export default agentEnvironment({
  description: "Two sides argue, and a judge decides.",
  agent: customAgent(async ({ text: question, context: { model, signal } }) => {
    const said: string[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      for (const side of SIDES) {
        const system = `You argue in a debate that the answer is ${side}. Reply to the other side in one short paragraph.`;
        const { message } = await model("main").complete({
          messages: [
            { role: "system", content: system },
            { role: "user", content: [`Question: ${question}`, ...said].join("\n\n") },
          ],
        });
        said.push(`${side}: ${message.content}`);
      }
    }
    const judge = modelJudge(model("main"), { verdicts: SIDES });
    const rubric = "The answer is a debate. The verdict is the side with the better arguments, whatever you think yourself.";
    const { verdict, reason } = await judge.judge({ question, answer: said.join("\n\n"), rubric }, signal);
    return `${verdict}: ${reason}`;
  }),
});
