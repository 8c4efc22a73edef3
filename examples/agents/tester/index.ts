import { type Child, defineEnvironment, pathTaken } from "@aenv/kit";
import * as z from "zod";

const number = z.int().min(0).max(99);
const sum = z.object({ first: number, second: number });

/** What the tested agent answers in a conversation of its own, which nothing said before can change. */
async function answerOf(target: Child, { first, second }: z.infer<typeof sum>): Promise<string> {
  const { structuredContent } = await target.callTool("send_message", { message: `${first} + ${second}` });
  const { state, reply } = structuredContent as { readonly state: string; readonly reply: string };
  if (state !== "completed") throw new Error(`the tested agent gave no answer: its task is ${state}`);
  return reply;
}

/** An agent tests another one, which is a child. The score is from code: a report counts if the target is really wrong there. */
export default defineEnvironment({
  tasks: () => [
    { id: "sums", instruction: "An agent adds two numbers from 0 to 99, and is wrong for some. Find such numbers and report them." },
  ],
  setup: () => ({ reported: null as z.infer<typeof sum> | null }),
  tools: [
    {
      name: "ask",
      description: "Asks the agent for a sum.",
      input: sum,
      run: (input, { children }) => answerOf(children.get("target"), input),
    },
    {
      name: "report",
      description: "Reports numbers for which the agent is wrong. Only the first report counts.",
      input: sum,
      run: (input, { state }) => {
        if (state.reported !== null) throw new Error("there is a report already");
        state.reported = input;
        return "reported";
      },
    },
  ],
  status: ({ state }) => state.reported !== null,
  rewards: [
    {
      name: "found",
      weight: 0.9,
      score: async ({ state: { reported }, children }) => {
        if (reported === null) return 0;
        return Number((await answerOf(children.get("target"), reported)) !== String(reported.first + reported.second));
      },
    },
    // A report without a question before it would be a guess.
    pathTaken({ name: "tried", weight: 0.1, order: ["ask", "report"], most: 40 }),
  ],
});
