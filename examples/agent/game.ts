import { defineEnvironment } from "@aenv/kit";
import * as z from "zod";

/** The agent gets `instruction`; the other fields are for the game itself. */
const tasks = [
  { id: "ten", split: "train", highest: 10, guesses: 4 },
  { id: "hundred", split: "train", highest: 100, guesses: 7 },
  { id: "thousand", split: "test", highest: 1000, guesses: 10 },
].map((task) => ({
  ...task,
  instruction: `I think of a whole number from 1 to ${task.highest}. Find it in at most ${task.guesses} guesses, then say it.`,
}));

/** Find the number: the state is the secret of an episode and the agent's progress. */
export const game = defineEnvironment({
  tasks: () => tasks,
  setup: ({ task, seed }) => {
    const { highest, guesses } = tasks.find(({ id }) => id === task?.id) ?? { highest: 10, guesses: 4 };
    // The same seed hides the same number, so that an episode can be played again.
    return { secret: 1 + (seed % highest), allowed: guesses, left: guesses, isFound: false };
  },
  tools: [
    {
      name: "guess",
      description: "Guesses the number. Says whether it is higher or lower, or that the guess is right.",
      input: z.object({ number: z.int() }),
      run: ({ number }, { state }) => {
        if (state.isFound) throw new Error("the number is found already");
        if (state.left === 0) throw new Error("there are no guesses left");
        state.left -= 1;
        state.isFound = number === state.secret;
        if (state.isFound) return `${number} is right`;
        return `the number is ${number < state.secret ? "higher" : "lower"}; guesses left: ${state.left}`;
      },
    },
  ],
  rewards: [
    { name: "found", weight: 0.8, score: ({ state }) => (state.isFound ? 1 : 0) },
    { name: "thrift", weight: 0.2, score: ({ state }) => (state.isFound ? state.left / state.allowed : 0) },
  ],
});
