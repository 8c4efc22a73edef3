import { defineEnvironment } from "aenvironment";
import * as z from "zod";

/** The state of one episode: a plain value, so that it can be reset, saved, copied and forked. */
interface State {
  readonly goal: number;
  total: number;
}

export default defineEnvironment({
  // What agents are asked to do. They read the instruction; the other fields are for the code below.
  tasks: () => [
    { id: "three", split: "train", instruction: "Bring the total to 3.", goal: 3 },
    { id: "ten", split: "test", instruction: "Bring the total to 10.", goal: 10 },
  ],

  // The state of a new episode. The task is null if the caller has named none.
  setup: ({ task }): State => ({ goal: typeof task?.goal === "number" ? task.goal : 3, total: 0 }),

  // What an agent can do. It reads the name, the description and the input. Only tools change the state.
  tools: [
    {
      name: "add",
      description: "Adds a number to the total and answers the new total.",
      input: z.object({ n: z.number().describe("what to add; may be negative") }),
      run: ({ n }, { state }) => {
        state.total += n;
        return { total: state.total };
      },
    },
  ],

  // The score of an episode, from 0 to 1. Only the trainer can ask for it.
  rewards: [{ name: "reached", description: "1 when the total is the goal.", score: ({ state }) => (state.total === state.goal ? 1 : 0) }],

  // The actions that solve the task. `npx aenvironment rollout .` plays them, and `npx aenvironment test` checks that they score 1.
  oracle: ({ state }) => [{ tool: "add", arguments: { n: state.goal } }],
});
